/* SPDX-License-Identifier: MIT */
/*
 * Symbols on their way into an index, in the order of their starts. A runtime
 * has a few code heaps and fills each upwards, so what it writes down is a few
 * ascending runs, shuffled: a symbol goes to the run whose last start is
 * nearest below its own, and in the end the runs are merged, which moves
 * nothing about. Only what fits no run is sorted. Knows no names and settles no
 * overlaps.
 */
#ifndef LIBSYM_INDEX_RUNS_H
#define LIBSYM_INDEX_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct index_item {
	uint64_t start;
	uint32_t size;  /* INDEX_ITEM_LARGE: too large to be told here */
	uint32_t order; /* the how-manieth it was */
	uint32_t name_offset;
	uint32_t value;
};

#define INDEX_ITEM_LARGE UINT32_MAX

enum {
	INDEX_RUNS = 16,
	INDEX_RUN_STEP = 1 << 12 /* so close behind another nothing else is tried */
};

struct index_chunk;
struct index_slab;

/* A size that does not fit into an item. */
struct index_large {
	uint64_t size_bytes;
	uint32_t order;
	uint32_t reserved;
};

struct index_runs {
	size_t count;
	/* private */
	unsigned int run_count, last_run;
	struct index_item *next, *end; /* of the last chunk of the last run */
	uint64_t tails[INDEX_RUNS];    /* last start of each run */
	struct index_chunk *first[INDEX_RUNS], *last[INDEX_RUNS];
	struct index_item *rest; /* what fitted no run */
	size_t rest_count, rest_capacity;
	struct index_large *large; /* ascending by order */
	size_t large_count, large_capacity;
	struct index_slab *slabs;
};

void index_runs_deinit(struct index_runs *runs);

/* Has memory for that many at once. Advice: without it memory comes in steps. */
void index_runs_reserve(struct index_runs *runs, size_t count);

/* Room for one item that starts at `start`, wherever it goes; NULL when there is no memory. */
struct index_item *index_runs_place(struct index_runs *runs, uint64_t start);

/* The size of the item that is added next. */
bool index_runs_add_large(struct index_runs *runs, uint64_t size_bytes);

/* At most 2^32 - 1 of them. False when there is no memory. */
static inline bool index_runs_add(struct index_runs *runs, uint64_t start, uint64_t size_bytes,
				  uint32_t name_offset, uint32_t value)
{
	struct index_item *item = runs->next;

	/* Mostly close behind the one before. */
	if (item < runs->end && start - runs->tails[runs->last_run] < INDEX_RUN_STEP &&
	    start >= runs->tails[runs->last_run]) {
		runs->tails[runs->last_run] = start;
		runs->next++;
	} else {
		item = index_runs_place(runs, start);
		if (!item)
			return false;
	}
	if (size_bytes >= INDEX_ITEM_LARGE && !index_runs_add_large(runs, size_bytes))
		return false;
	item->start = start;
	item->size = size_bytes < INDEX_ITEM_LARGE ? (uint32_t)size_bytes : INDEX_ITEM_LARGE;
	item->order = (uint32_t)runs->count++;
	item->name_offset = name_offset;
	item->value = value;
	return true;
}

/* What there is about an item that says INDEX_ITEM_LARGE. */
const struct index_large *index_runs_large(const struct index_runs *runs,
					   const struct index_item *item);

static inline uint64_t index_runs_size(const struct index_runs *runs, const struct index_item *item)
{
	return item->size == INDEX_ITEM_LARGE ? index_runs_large(runs, item)->size_bytes
					      : item->size;
}

/* All of them by start, equal starts in the order in which they came. */
struct index_cursor {
	struct index_lane {
		const struct index_item *next, *end; /* both NULL behind the last lane */
		const struct index_chunk *chunk;     /* NULL: sorted, all that there are */
	} lanes[INDEX_RUNS + 1];
	unsigned int lane_count;
	unsigned int lane; /* from which it is being read */
	uint64_t limit;    /* from where on another lane may come first */
	struct index_item *sorted;
};

/* False when there is no memory. The runs must stay as they are until _end(). */
bool index_cursor_begin(struct index_cursor *cursor, struct index_runs *runs);
void index_cursor_end(struct index_cursor *cursor);

/* To the next item, where that is not simply the one behind; for index_cursor_next(). */
void index_cursor_turn(struct index_cursor *cursor);

/* NULL behind the last one. */
static inline const struct index_item *index_cursor_next(struct index_cursor *cursor)
{
	struct index_lane *lane = &cursor->lanes[cursor->lane];

	/* Items of other lanes at the limit itself may have come earlier. */
	if (lane->next >= lane->end || lane->next->start >= cursor->limit)
		index_cursor_turn(cursor);
	lane = &cursor->lanes[cursor->lane];
	return lane->next ? lane->next++ : NULL;
}

#endif
