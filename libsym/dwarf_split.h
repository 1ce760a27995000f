/* SPDX-License-Identifier: MIT */
/*
 * Split DWARF (-gsplit-dwarf): what the skeleton of a unit in a file leaves to another file, a .dwo
 * of its own or a package for all (.dwp, DWARF 5 section 7.3.5). libdw (0.188) would map a .dwo, so
 * that who cuts it ends the process, opens those of all units at once, and knows no packages. So it
 * is given the sections in memory, as those of a file of one unit, when somebody asks for that one.
 *
 * A unit is known by its id. What it says of addresses lies in the file with the skeleton, in parts
 * that begin where the skeleton says: they are handed to libdw from there on. Only where its ranges
 * count from cannot be told to libdw; so ranges are walked here.
 */
#ifndef LIBSYM_DWARF_SPLIT_H
#define LIBSYM_DWARF_SPLIT_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/cleanup.h"

struct dwarf_split_file;

/* What the units of one file have in common. */
struct dwarf_splits {
	Elf *elf;                         /* with the skeletons; borrowed */
	int fd;                           /* of the file; borrowed */
	uint64_t *promised_bytes;         /* of dwarf_files_guard() */
	struct dwarf_split_file *package; /* NULL: there is none, or nobody has looked */
	bool has_looked;
};

void dwarf_splits_deinit(struct dwarf_splits *splits);

/* Has this unit left something to another file? */
bool dwarf_split_is_skeleton(Dwarf_Die *unit);

/* Sees to it that libdw never opens a file for this skeleton of `elf`: it is told that there is
 * none. False when that cannot be done: then it must not be asked for anything of the unit. */
bool dwarf_split_keep_from_libdw(Elf *elf, Dwarf_Die *skeleton);

struct dwarf_split;

/*
 * The rest of a skeleton. Opens files that the DWARF names, or that lie beside its own; only
 * regular ones. NULL when there is none that is its own, it lies about its sizes, or for want of
 * memory.
 */
struct dwarf_split *dwarf_split_open(struct dwarf_splits *splits, Dwarf_Die *skeleton);
void dwarf_split_close(struct dwarf_split *split);

/* Its root; lives as long as the split. */
Dwarf_Die *dwarf_split_unit(struct dwarf_split *split);

/* The ranges of code of one entry, one after another. */
struct dwarf_range_walk {
	const struct dwarf_split *split; /* whose the entry is; NULL: it is of an ordinary unit */
	Dwarf_Die *die;
	bool has_begun;
	bool is_list; /* of a split unit */
	ptrdiff_t next;
	Dwarf_Addr base;
};

struct dwarf_range_walk dwarf_range_walk_over(const struct dwarf_split *split, Dwarf_Die *die);

/* False at the end, and where the list cannot be read. */
bool dwarf_range_walk_next(struct dwarf_range_walk *walk, uint64_t *start_ret, uint64_t *end_ret);

#endif
