/* SPDX-License-Identifier: MIT */
/*
 * The functions of one compilation unit and what was inlined into them, as
 * ranges of vaddrs that are searched. Knows DWARF's tree only as far as that; the
 * caller sees to it that nobody else uses the same Dwarf meanwhile.
 */
#ifndef LIBSYM_DWARF_SCOPES_H
#define LIBSYM_DWARF_SCOPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/dwarf_split.h"

#define DWARF_SCOPE_NONE UINT32_MAX

/* A function with code, or one that was inlined. */
struct dwarf_scope {
	Dwarf_Die die;
	uint32_t parent; /* the scope around it; DWARF_SCOPE_NONE for a function */
	bool is_inlined;
	bool is_named;         /* the rest is filled in */
	const char *name;      /* as a person would write it; NULL: it has none */
	const char *linkage;   /* NULL: the same */
	const char *call_file; /* of what is inlined; NULL: unknown */
	uint32_t call_line, call_column;
};

struct dwarf_range {
	uint64_t start, end; /* vaddrs */
	uint32_t scope;
	uint32_t around; /* the range before that may reach over this one; DWARF_SCOPE_NONE: none */
};

struct dwarf_scopes {
	struct dwarf_scope *items;
	uint32_t count, capacity;
	struct dwarf_range *ranges; /* by start, the longer ones first */
	uint32_t range_count, range_capacity;
};

/* Of the unit's own entries, of which each has at least one byte; 0 where it lies. */
uint64_t dwarf_scopes_unit_bytes(Dwarf_Die *unit);

/*
 * `split`: whose the unit is, NULL for an ordinary one. False for want of memory. A unit that
 * contradicts itself yields what could be read of it.
 */
bool dwarf_scopes_read(Dwarf_Die *unit, const struct dwarf_split *split, struct dwarf_scopes *ret);
void dwarf_scopes_deinit(struct dwarf_scopes *scopes);

/* The innermost scope that has code at `vaddr`, or DWARF_SCOPE_NONE. */
uint32_t dwarf_scopes_find(const struct dwarf_scopes *scopes, uint64_t vaddr);

#endif
