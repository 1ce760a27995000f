/* SPDX-License-Identifier: MIT */
/*
 * Split DWARF (-gsplit-dwarf): the skeleton of a unit in a file refers to another file, a .dwo of
 * its own or a package of all units (.dwp; DWARF 5, section 7.3.5).
 *
 * libdw (0.188) would map a .dwo, so truncating that file would end the process. It would also open
 * the files of all units at once, and does not support packages. So it gets the sections from
 * memory, as a file with one unit, when that unit is needed.
 *
 * An id identifies a unit. Its addresses lie in the file with the skeleton, in parts whose start
 * the skeleton contains; libdw gets them from there on. libdw cannot be given the base of ranges,
 * so ranges are walked here.
 */
#ifndef LIBSYM_DWARF_DWARF_SPLIT_H
#define LIBSYM_DWARF_DWARF_SPLIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/cleanup.h"

struct dwarf_split_file;

/* The state shared by all units of one file. */
struct dwarf_splits {
	Elf *elf;                         /* with the skeletons; borrowed */
	int fd;                           /* of the file; borrowed */
	const struct rights *rights;      /* as in struct dwarf_fetch */
	struct dwarf_charge *charge;      /* as used by dwarf_files_guard() */
	struct dwarf_split_file *package; /* NULL: there is none, or it was not searched for */
	bool has_looked;
};

void dwarf_splits_deinit(struct dwarf_splits *splits);

/* Is this the skeleton of a split unit? */
bool dwarf_split_is_skeleton(Dwarf_Die *unit);

/* Makes libdw believe that the split file of this skeleton does not exist, so that it never opens
 * it. Returns false if that fails: libdw must then not read the unit at all. */
bool dwarf_split_hide_from_libdw(Elf *elf, Dwarf_Die *skeleton);

struct dwarf_split;

/* Opens the split part of a skeleton: a file that the DWARF names, or that lies beside its own;
 * regular files only. NULL if there is none with this unit, it is malformed, or out of memory. */
struct dwarf_split *dwarf_split_open(struct dwarf_splits *splits, Dwarf_Die *skeleton);
void dwarf_split_close(struct dwarf_split *split);

/* The root entry; valid as long as the split. */
Dwarf_Die *dwarf_split_unit(struct dwarf_split *split);

/* Iterates over the code ranges of one entry. */
struct dwarf_range_walk {
	const struct dwarf_split *split; /* the owner of the entry; NULL: an ordinary unit */
	Dwarf_Die *die;
	bool has_begun;
	bool is_list; /* of a split unit */
	ptrdiff_t next;
	Dwarf_Addr base;
};

struct dwarf_range_walk dwarf_range_walk_over(const struct dwarf_split *split, Dwarf_Die *die);

/* Returns false at the end, or if the list cannot be read. */
bool dwarf_range_walk_next(struct dwarf_range_walk *walk, uint64_t *start_ret, uint64_t *end_ret);

#endif
