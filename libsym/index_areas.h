/* SPDX-License-Identifier: MIT */
/*
 * Symbols on their way into an index, in the order of their starts. They are kept by the 64 KiB
 * of the address space in which they start, as they come. A runtime fills a few dozen heaps, in
 * turns, each upwards with exceptions: an area gets some hundred symbols, most of them in order,
 * and in the end the areas stand one behind another; the symbols of one in which some came in
 * another order are sorted by themselves, in the nearest cache. Knows no names and settles no
 * overlaps.
 */
#ifndef LIBSYM_INDEX_AREAS_H
#define LIBSYM_INDEX_AREAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/numbered_range.h"

enum {
	INDEX_AREA_SHIFT = 16 /* log2 of the bytes of an area */
};

struct index_item {
	uint32_t number;
	uint32_t value;
	uint32_t order; /* the how-manieth it was */
	uint16_t low;   /* where it starts in its area */
	uint16_t size;  /* INDEX_ITEM_LARGE: too large to be told here */
};

_Static_assert(sizeof(struct index_item) == 16, "four in a cache line");

#define INDEX_ITEM_LARGE UINT16_MAX

struct index_chunk;
struct index_slab;

/* A size that does not fit into an item. */
struct index_large {
	uint64_t size_bytes;
	uint32_t order;
	uint32_t reserved;
};

struct index_area {
	uint64_t number;               /* first address >> INDEX_AREA_SHIFT */
	struct index_item *next, *end; /* of its last chunk; NULL while it has none */
	struct index_chunk *first, *last;
	uint32_t count_before; /* of items in front of the last chunk */
	uint16_t last_low;
	bool is_unsorted; /* some start in front of one that came before */
};

struct index_areas {
	size_t count;
	/* private */
	uint32_t *slots; /* a hash table of areas by number, 0: none; those are at its front */
	unsigned int slot_bits;
	struct index_area *areas; /* the first one is none */
	uint32_t area_count;
	size_t area_capacity;
	struct index_large *large; /* ascending by order */
	size_t large_count, large_capacity;
	struct index_slab *slabs;
};

/* False when there is no memory; _deinit() is due all the same. */
bool index_areas_init(struct index_areas *areas);
void index_areas_deinit(struct index_areas *areas);

/* Has memory for about that many at once. Advice: without it memory comes in steps. */
void index_areas_reserve(struct index_areas *areas, size_t count);

/* Is a symbol refused because it lies in none of LIMIT_INDEX_AREAS areas? */
bool index_areas_are_full(const struct index_areas *areas);

/* For index_areas_add(). */
bool index_areas_add_apart(struct index_areas *areas, const struct numbered_range *range);

#define INDEX_AREA_FACTOR ((uint64_t)0x9e3779b97f4a7c15)

static inline uint32_t *index_areas_slot(const struct index_areas *areas, uint64_t area_number)
{
	return &areas->slots[area_number * INDEX_AREA_FACTOR >> (64 - areas->slot_bits)];
}

/*
 * Adds of those ranges the first ones that simply go on in their areas; how many. Heaps take turns
 * as they like: no branch here asks which it is. At most 2^32 - 1 in all.
 */
static inline size_t index_areas_add_some(struct index_areas *areas,
					  const struct numbered_range *ranges, size_t count)
{
	struct index_area *const first_area = areas->areas;
	const uint32_t *const slots = areas->slots;
	const unsigned int shift = 64 - areas->slot_bits;
	const uint64_t before = areas->count;
	size_t i;

	for (i = 0; i < count; i++) {
		const struct numbered_range *range = &ranges[i];
		uint64_t number = range->start >> INDEX_AREA_SHIFT;
		struct index_area *area = &first_area[slots[number * INDEX_AREA_FACTOR >> shift]];
		struct index_item *item = area->next;
		uint16_t low = (uint16_t)range->start;

		if (area->number != number || item == area->end ||
		    range->size_bytes >= INDEX_ITEM_LARGE ||
		    range->start + range->size_bytes < range->start)
			break;
		area->is_unsorted |= low < area->last_low;
		area->last_low = low;
		area->next = item + 1;
		*item = (struct index_item){ range->number, range->value, (uint32_t)(before + i),
					     low, (uint16_t)range->size_bytes };
	}
	areas->count = before + i;
	return i;
}

/* One, wherever it goes; false when there is no memory, or areas are full. */
static inline bool index_areas_add(struct index_areas *areas, const struct numbered_range *range)
{
	return index_areas_add_some(areas, range, 1) || index_areas_add_apart(areas, range);
}

struct index_symbol {
	uint64_t start, size_bytes;
	uint32_t number, value;
	uint32_t order;
};

/* All of them by start, equal starts in the order in which they came. */
struct index_cursor {
	/* Items of one area in order; `next` may be moved on. */
	const struct index_item *next, *end;
	uint64_t base; /* where the area begins */
	/* private */
	const struct index_areas *areas;
	const struct index_chunk *chunk; /* behind `end` */
	uint32_t *order;                 /* the areas by number */
	uint32_t next_area;
	struct index_item *came, *sorted; /* room for one area */
	uint64_t *keys;
};

/* False when there is no memory; _end() is due all the same. The areas must stay as they are until
 * then. */
bool index_cursor_begin(struct index_cursor *cursor, struct index_areas *areas);
void index_cursor_end(struct index_cursor *cursor);

/* To the next items; false behind the last ones. For index_cursor_next(). */
bool index_cursor_turn(struct index_cursor *cursor);

/* The size of an item that says INDEX_ITEM_LARGE. */
uint64_t index_areas_large(const struct index_areas *areas, const struct index_item *item);

/* What the item says, whose area begins at the cursor's base. */
static inline void index_cursor_read(const struct index_cursor *cursor,
				     const struct index_item *item, struct index_symbol *ret)
{
	*ret = (struct index_symbol){
		.start = cursor->base + item->low,
		.size_bytes = item->size == INDEX_ITEM_LARGE
				      ? index_areas_large(cursor->areas, item)
				      : item->size,
		.number = item->number,
		.value = item->value,
		.order = item->order,
	};
}

/* False behind the last one. */
static inline bool index_cursor_next(struct index_cursor *cursor, struct index_symbol *ret)
{
	if (cursor->next == cursor->end && !index_cursor_turn(cursor))
		return false;
	index_cursor_read(cursor, cursor->next++, ret);
	return true;
}

#endif
