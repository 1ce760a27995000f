/* SPDX-License-Identifier: MIT */
/*
 * Walks the tree of one unit and records each function and inlined function as a scope with ranges
 * of vaddrs. Ranges are sorted by start, longer ones first, so an enclosing range comes before
 * those inside it. `around` links each range to the nearest one before it that may extend over it:
 *
 *   0  main      |------------------------|   around: none
 *   1  inlined      |--------|                around: 0
 *   2  inlined                 |----|         around: 0
 *
 * A look-up finds the last range that starts at or before the vaddr and follows `around` until a
 * range covers it. Depth, entries and ranges are bounded.
 */
#include "libsym/dwarf/dwarf_scopes.h"
#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"

#include <dwarf.h>
#include <stdlib.h>

enum {
	MAX_DEPTH = 256, /* of the tree; compilers nest some tens */
	MAX_RANGES = 1 << 24,
	MAX_ENTRIES = 1 << 26, /* visited in one unit; the largest LTO units have some millions */
	/* Ranges of one unit: some hundreds per function, and a few per byte of the unit in a real
	 * file. A malformed file can give one long list to many functions. */
	FREE_RANGES = 1 << 16,
	RANGES_PER_BYTE = 4
};

/* Used instead of a scope number. */
static const uint32_t discarded = DWARF_SCOPE_NONE - 1;

struct walk {
	struct dwarf_scopes *scopes;
	const struct dwarf_split *split;
	uint32_t budget; /* entries that may still be visited */
	uint32_t max_ranges;
	bool no_memory;
};

void dwarf_scopes_deinit(struct dwarf_scopes *scopes)
{
	free(scopes->items);
	free(scopes->ranges);
	*scopes = (struct dwarf_scopes){ 0 };
}

static bool add_range(struct walk *walk, uint32_t scope, uint64_t start, uint64_t end)
{
	struct dwarf_scopes *scopes = walk->scopes;

	if (scopes->range_count >= walk->max_ranges)
		return false;
	walk->no_memory |= !grow_items((void **)&scopes->ranges, &scopes->range_capacity,
				       scopes->range_count, sizeof(*scopes->ranges));
	if (walk->no_memory)
		return false;
	scopes->ranges[scopes->range_count++] =
		(struct dwarf_range){ .start = start, .end = end, .scope = scope };
	return true;
}

/* The scope of an entry, or `parent` if it has no code. `discarded` if it had code that the linker
 * removed. */
static uint32_t add_scope(struct walk *walk, Dwarf_Die *die, uint32_t parent, bool is_inlined)
{
	struct dwarf_scopes *scopes = walk->scopes;
	struct dwarf_range_walk ranges = dwarf_range_walk_over(walk->split, die);
	uint32_t number = scopes->count, first = scopes->range_count;
	bool was_any = false;
	uint64_t start, end;

	walk->no_memory |= !grow_items((void **)&scopes->items, &scopes->capacity, scopes->count,
				       sizeof(*scopes->items));
	if (walk->no_memory)
		return parent;
	while (dwarf_range_walk_next(&ranges, &start, &end)) {
		was_any |= start < end;
		if (start < end && start && !add_range(walk, number, start, end))
			break;
	}
	if (scopes->range_count == first)
		return was_any && !is_inlined ? discarded : parent;
	scopes->items[scopes->count++] = (struct dwarf_scope){
		.die = *die,
		.parent = is_inlined ? parent : DWARF_SCOPE_NONE,
		.is_inlined = is_inlined,
	};
	return number;
}

/* The entries that can contain functions; types contain the functions of local classes. */
static bool may_hold_code(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_imported_unit:
		return true;
	default:
		return false;
	}
}

static void walk_children(struct walk *walk, Dwarf_Die *die, uint32_t scope, int depth)
{
	Dwarf_Die child;

	if (depth > MAX_DEPTH || dwarf_child(die, &child))
		return;
	do {
		int tag = dwarf_tag(&child);
		uint32_t inner = scope;

		/* A reference to a sibling can lead backwards, so the walk is bounded. */
		if (!walk->budget || walk->no_memory)
			return;
		walk->budget--;
		/* Other code lies now where the inlined code was. */
		if (!may_hold_code(tag) || (scope == discarded && tag == DW_TAG_inlined_subroutine))
			continue;
		if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
			inner = add_scope(walk, &child, scope, tag == DW_TAG_inlined_subroutine);
		walk_children(walk, &child, inner, depth + 1);
	} while (!dwarf_siblingof(&child, &child));
}

static int compare_ranges(const void *left, const void *right)
{
	const struct dwarf_range *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a->scope < b->scope ? -1 : a->scope > b->scope; /* outer scopes were visited first */
}

/* For each range, links the last one before it that is still open at its start. */
static void link_enclosing_ranges(struct dwarf_scopes *scopes)
{
	uint32_t top = DWARF_SCOPE_NONE;

	if (scopes->range_count)
		qsort(scopes->ranges, scopes->range_count, sizeof(*scopes->ranges), compare_ranges);
	for (uint32_t i = 0; i < scopes->range_count; i++) {
		while (top != DWARF_SCOPE_NONE &&
		       scopes->ranges[top].end <= scopes->ranges[i].start)
			top = scopes->ranges[top].around;
		scopes->ranges[i].around = top;
		top = i;
	}
}

uint64_t dwarf_scopes_unit_bytes(Dwarf_Die *unit)
{
	Dwarf_Off start = dwarf_dieoffset(unit) - dwarf_cuoffset(unit), end;
	size_t header_bytes;

	if (dwarf_nextcu(dwarf_cu_getdwarf(unit->cu), start, &end, &header_bytes, NULL, NULL,
			 NULL) ||
	    end < start)
		return 0;
	return end - start;
}

bool dwarf_scopes_read(Dwarf_Die *unit, const struct dwarf_split *split, struct dwarf_scopes *ret)
{
	struct dwarf_scopes scopes = { 0 };
	uint64_t bytes = dwarf_scopes_unit_bytes(unit);
	struct walk walk = {
		.scopes = &scopes,
		.split = split,
		.budget = bytes < MAX_ENTRIES ? (uint32_t)bytes : MAX_ENTRIES,
		.max_ranges = bytes < MAX_RANGES / RANGES_PER_BYTE
				      ? FREE_RANGES + (uint32_t)bytes * RANGES_PER_BYTE
				      : MAX_RANGES,
	};

	walk_children(&walk, unit, DWARF_SCOPE_NONE, 0);
	if (walk.no_memory) {
		dwarf_scopes_deinit(&scopes);
		return false;
	}
	link_enclosing_ranges(&scopes);
	*ret = scopes;
	return true;
}

uint32_t dwarf_scopes_find(const struct dwarf_scopes *scopes, uint64_t vaddr)
{
	uint32_t low = (uint32_t)ascending_items_up_to(scopes->ranges, scopes->range_count,
						       sizeof(*scopes->ranges), vaddr);

	for (uint32_t i = low ? low - 1 : DWARF_SCOPE_NONE; i != DWARF_SCOPE_NONE;
	     i = scopes->ranges[i].around)
		if (vaddr < scopes->ranges[i].end)
			return scopes->ranges[i].scope;
	return DWARF_SCOPE_NONE;
}
