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
	INDEX_RUN_STEP = 1 << 12, /* so close behind another nothing else is tried */
	INDEX_AREA_BITS = 6,
	INDEX_AREA_SHIFT = 22 /* log2 of their bytes */
};

struct index_chunk;
struct index_slab;

/* A size that does not fit into an item. */
struct index_large {
	uint64_t size_bytes;
	uint32_t order;
	uint32_t reserved;
};

struct index_run {
	uint64_t tail;                 /* last start */
	struct index_item *next, *end; /* of its last chunk; NULL while it has none */
	struct index_chunk *first, *last;
};

struct index_runs {
	size_t count;
	/* private */
	unsigned int run_count;
	struct index_run runs[INDEX_RUNS];
	uint8_t last_runs[1 << INDEX_AREA_BITS]; /* to which something of an area went last */
	struct index_item *rest;                 /* what fitted no run */
	size_t rest_count, rest_capacity;
	struct index_large *large; /* ascending by order */
	size_t large_count, large_capacity;
	struct index_slab *slabs;
};

void index_runs_deinit(struct index_runs *runs);

/* Has memory for that many at once. Advice: without it memory comes in steps. */
void index_runs_reserve(struct index_runs *runs, size_t count);

/* For index_runs_add(): wherever it goes, of whatever size. */
bool index_runs_add_apart(struct index_runs *runs, uint64_t start, uint64_t size_bytes,
			  uint32_t name_offset, uint32_t value);

/*
 * In which run something that starts there is likely to go on. Heaps take turns as they like: a
 * branch that asks whether it is the run of the one before would often go the wrong way.
 */
static inline uint8_t *index_runs_guess(struct index_runs *runs, uint64_t start)
{
	uint64_t area = (start >> INDEX_AREA_SHIFT) * 0x9e3779b97f4a7c15;

	return &runs->last_runs[area >> (64 - INDEX_AREA_BITS)];
}

/* At most 2^32 - 1 of them. False when there is no memory. */
static inline bool index_runs_add(struct index_runs *runs, uint64_t start, uint64_t size_bytes,
				  uint32_t name_offset, uint32_t value)
{
	struct index_run *run = &runs->runs[*index_runs_guess(runs, start)];
	struct index_item *item = run->next;

	/* Mostly close behind the one before. */
	if (item >= run->end || start - run->tail >= INDEX_RUN_STEP || start < run->tail ||
	    size_bytes >= INDEX_ITEM_LARGE)
		return index_runs_add_apart(runs, start, size_bytes, name_offset, value);
	run->tail = start;
	run->next++;
	*item = (struct index_item){ start, (uint32_t)size_bytes, (uint32_t)runs->count++,
				     name_offset, value };
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
