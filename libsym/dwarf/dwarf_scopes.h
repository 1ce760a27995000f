/* SPDX-License-Identifier: MIT */
/*
 * The functions of one compilation unit and their inlined functions, as ranges of vaddrs. Walks
 * DWARF's tree only as far as needed for that. The caller must ensure that no other thread uses the
 * same Dwarf.
 */
#ifndef LIBSYM_DWARF_DWARF_SCOPES_H
#define LIBSYM_DWARF_DWARF_SCOPES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/dwarf/dwarf_split.h"

#define DWARF_SCOPE_NONE UINT32_MAX

/* A function with code, or an inlined function. */
struct dwarf_scope {
	Dwarf_Die die;
	uint32_t parent; /* the enclosing scope; DWARF_SCOPE_NONE for a function */
	bool is_inlined;
	bool is_named;         /* the fields below are filled in */
	const char *name;      /* demangled; NULL: none */
	const char *linkage;   /* NULL: equal to name */
	const char *call_file; /* of the call of an inlined function; NULL: unknown */
	uint32_t call_line, call_column;
};

struct dwarf_range {
	uint64_t start, end; /* vaddrs */
	uint32_t scope;
	/* the previous range that may extend over this one; DWARF_SCOPE_NONE: none */
	uint32_t around;
};

struct dwarf_scopes {
	struct dwarf_scope *items;
	struct dwarf_range *ranges; /* by start; longer ones first */
	uint32_t count, range_count;
	size_t capacity, range_capacity;
};

/*
 * Size of the unit's own entries, each of which has at least one byte; 0 if its size is malformed.
 */
uint64_t dwarf_scopes_unit_bytes(Dwarf_Die *unit);

/* `split`: the owner of the unit; NULL for an ordinary unit. Returns false if out of memory. A
 * malformed unit yields what could be read. */
bool dwarf_scopes_read(Dwarf_Die *unit, const struct dwarf_split *split, struct dwarf_scopes *ret);
void dwarf_scopes_deinit(struct dwarf_scopes *scopes);

/* The innermost scope with code at `vaddr`, or DWARF_SCOPE_NONE. */
uint32_t dwarf_scopes_find(const struct dwarf_scopes *scopes, uint64_t vaddr);

#endif
