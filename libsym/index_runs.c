/* SPDX-License-Identifier: MIT */
#include "libsym/index_runs.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/huge_memory.h"
#include "libsym/index_sort.h"

enum {
	SMALLEST_CHUNK = 32,
	LARGEST_CHUNK = 4096,
	SLAB_ITEMS = 3 * LARGEST_CHUNK,
	/* Sorted items so far ahead are fetched while one is handed out. */
	FETCH_AHEAD = 12
};

/* Items of one run that lie together. */
struct index_chunk {
	struct index_chunk *next;
	size_t count; /* of items, when there is another chunk of its run or a cursor */
	struct index_item items[];
};

/* Memory that chunks are cut from. */
struct index_slab {
	struct index_slab *next;
	size_t used_bytes, capacity_bytes;
	uint64_t room[]; /* aligned as a chunk is */
};

void index_runs_deinit(struct index_runs *runs)
{
	while (runs->slabs) {
		struct index_slab *next = runs->slabs->next;

		free(runs->slabs);
		runs->slabs = next;
	}
	free(runs->rest);
	free(runs->large);
	*runs = (struct index_runs){ 0 };
}

static struct index_slab *add_slab(struct index_runs *runs, size_t room_bytes)
{
	struct index_slab *slab = huge_memory_allocate(sizeof(*slab) + room_bytes);

	if (!slab)
		return NULL;
	slab->next = runs->slabs;
	slab->used_bytes = 0;
	slab->capacity_bytes = room_bytes;
	runs->slabs = slab;
	return slab;
}

static size_t chunk_bytes(size_t items)
{
	return sizeof(struct index_chunk) + items * sizeof(struct index_item);
}

void index_runs_reserve(struct index_runs *runs, size_t count)
{
	/* A chunk at the end of each run is not full. */
	if (!runs->slabs && count >= LARGEST_CHUNK)
		add_slab(runs, chunk_bytes(count) +
				       (count / LARGEST_CHUNK + INDEX_RUNS) * chunk_bytes(0) +
				       2 * chunk_bytes(LARGEST_CHUNK));
}

/* What has been added to the last chunk is written down in it. */
static void count_last(struct index_run *run)
{
	if (run->last)
		run->last->count = (size_t)(run->next - run->last->items);
}

static bool add_chunk(struct index_runs *runs, struct index_run *run)
{
	size_t items = runs->count / 4, bytes;
	struct index_slab *slab = runs->slabs;
	struct index_chunk *chunk;

	items = items < SMALLEST_CHUNK ? SMALLEST_CHUNK : items;
	items = items > LARGEST_CHUNK ? LARGEST_CHUNK : items;
	bytes = chunk_bytes(items);
	if (!slab || slab->capacity_bytes - slab->used_bytes < bytes)
		slab = add_slab(runs, items < LARGEST_CHUNK ? 2 * bytes : chunk_bytes(SLAB_ITEMS));
	if (!slab)
		return false;
	chunk = (struct index_chunk *)((char *)slab->room + slab->used_bytes);
	slab->used_bytes += bytes;
	chunk->next = NULL;
	count_last(run);
	if (run->last)
		run->last->next = chunk;
	else
		run->first = chunk;
	run->last = chunk;
	run->next = chunk->items;
	run->end = chunk->items + items;
	return true;
}

/*
 * The run with the highest last start at or below `start`; a new one where the
 * nearest is far below, so that a run is one code heap; INDEX_RUNS when none fits.
 */
static unsigned int choose_run(struct index_runs *runs, uint64_t start)
{
	static const uint64_t near_bytes = (uint64_t)1 << 26;
	uint64_t distance = UINT64_MAX;
	unsigned int best = 0, i;

	for (i = 0; i < runs->run_count; i++) {
		uint64_t tail = runs->runs[i].tail;
		uint64_t below = start >= tail ? start - tail : UINT64_MAX;

		best = below < distance ? i : best;
		distance = below < distance ? below : distance;
	}
	if (distance <= near_bytes)
		return best;
	if (runs->run_count < INDEX_RUNS)
		return runs->run_count++;
	return start >= runs->runs[best].tail ? best : INDEX_RUNS;
}

static struct index_item *add_to_run(struct index_runs *runs, unsigned int number, uint64_t start)
{
	struct index_run *run = &runs->runs[number];

	if (run->next == run->end && !add_chunk(runs, run))
		return NULL;
	run->tail = start;
	*index_runs_guess(runs, start) = (uint8_t)number;
	return run->next++;
}

static struct index_item *add_to_rest(struct index_runs *runs)
{
	if (runs->rest_count == runs->rest_capacity) {
		size_t capacity = runs->rest_capacity ? 2 * runs->rest_capacity : 256;
		struct index_item *rest = reallocarray(runs->rest, capacity, sizeof(*rest));

		if (!rest)
			return NULL;
		runs->rest = rest;
		runs->rest_capacity = capacity;
	}
	return &runs->rest[runs->rest_count++];
}

static bool add_large(struct index_runs *runs, uint64_t size_bytes)
{
	if (runs->large_count == runs->large_capacity) {
		size_t capacity = runs->large_capacity ? 2 * runs->large_capacity : 16;
		struct index_large *items = reallocarray(runs->large, capacity, sizeof(*items));

		if (!items)
			return false;
		runs->large = items;
		runs->large_capacity = capacity;
	}
	runs->large[runs->large_count++] = (struct index_large){
		.size_bytes = size_bytes,
		.order = (uint32_t)runs->count,
	};
	return true;
}

bool index_runs_add_apart(struct index_runs *runs, uint64_t start, uint64_t size_bytes,
			  uint32_t name_offset, uint32_t value)
{
	unsigned int run = choose_run(runs, start);
	struct index_item *item =
		run < INDEX_RUNS ? add_to_run(runs, run, start) : add_to_rest(runs);

	if (!item)
		return false;
	*item = (struct index_item){ start, (uint32_t)size_bytes, (uint32_t)runs->count,
				     name_offset, value };
	if (size_bytes >= INDEX_ITEM_LARGE) {
		item->size = INDEX_ITEM_LARGE;
		if (!add_large(runs, size_bytes))
			return false;
	}
	runs->count++;
	return true;
}

static int compare_large(const void *key, const void *element)
{
	uint32_t order = *(const uint32_t *)key;
	const struct index_large *large = element;

	return order < large->order ? -1 : order > large->order;
}

const struct index_large *index_runs_large(const struct index_runs *runs,
					   const struct index_item *item)
{
	return bsearch(&item->order, runs->large, runs->large_count, sizeof(*runs->large),
		       compare_large);
}

/* ---- in order ---------------------------------------------------------------------- */

static void enter_chunk(struct index_lane *lane, const struct index_chunk *chunk)
{
	lane->chunk = chunk;
	lane->next = chunk->items;
	lane->end = chunk->items + chunk->count;
}

/* What fitted no run, in order. */
static struct index_item *sort_rest(const struct index_runs *runs)
{
	size_t count = runs->rest_count, i;
	struct index_item *sorted = huge_memory_allocate(count * sizeof(*sorted));
	AUTO_FREE uint32_t *numbers =
		index_sort(&runs->rest->start, sizeof(*runs->rest), runs->rest_count);

	if (!sorted || !numbers) {
		free(sorted);
		return NULL;
	}
	for (i = 0; i < count; i++) {
		if (i + FETCH_AHEAD < count)
			__builtin_prefetch(&runs->rest[numbers[i + FETCH_AHEAD]]);
		sorted[i] = runs->rest[numbers[i]];
	}
	return sorted;
}

bool index_cursor_begin(struct index_cursor *cursor, struct index_runs *runs)
{
	unsigned int i;

	*cursor = (struct index_cursor){ 0 };
	for (i = 0; i < runs->run_count; i++) {
		/* Without memory there is a run that has nothing. */
		if (!runs->runs[i].first)
			continue;
		count_last(&runs->runs[i]);
		enter_chunk(&cursor->lanes[cursor->lane_count++], runs->runs[i].first);
	}
	if (runs->rest_count) {
		cursor->sorted = sort_rest(runs);
		if (!cursor->sorted)
			return false;
		cursor->lanes[cursor->lane_count++] = (struct index_lane){
			.next = cursor->sorted,
			.end = cursor->sorted + runs->rest_count,
		};
	}
	return true;
}

void index_cursor_end(struct index_cursor *cursor)
{
	free(cursor->sorted);
	cursor->sorted = NULL;
}

static bool comes_before(const struct index_item *left, const struct index_item *right)
{
	return left->start != right->start ? left->start < right->start
					   : left->order < right->order;
}

void index_cursor_turn(struct index_cursor *cursor)
{
	struct index_lane *lanes = cursor->lanes, *lane = &lanes[cursor->lane];
	unsigned int best = 0, i;

	if (cursor->lane_count && lane->next == lane->end) {
		if (lane->chunk && lane->chunk->next)
			enter_chunk(lane, lane->chunk->next);
		else
			*lane = lanes[--cursor->lane_count];
	}
	cursor->lane = 0;
	if (!cursor->lane_count) {
		lanes[0] = (struct index_lane){ 0 };
		return;
	}
	for (i = 1; i < cursor->lane_count; i++)
		if (comes_before(lanes[i].next, lanes[best].next))
			best = i;
	cursor->limit = UINT64_MAX;
	for (i = 0; i < cursor->lane_count; i++)
		if (i != best && lanes[i].next->start < cursor->limit)
			cursor->limit = lanes[i].next->start;
	cursor->lane = best;
}
