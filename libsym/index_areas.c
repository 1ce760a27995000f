/* SPDX-License-Identifier: MIT */
#include "libsym/index_areas.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/base/huge_memory.h"
#include "libsym/base/prefetch.h"
#include "libsym/index_sort.h"
#include "libsym/limits.h"

enum {
	SMALLEST_CHUNK = 4,
	LARGEST_CHUNK = 256,
	FETCHED_BYTES = 1024, /* of a chunk ahead: from there on the processor goes on by itself */
	CACHE_LINE_BYTES = 64,
	SMALLEST_SLAB = 512, /* items */
	LARGEST_SLAB = 1 << 14,
	FEWEST_SLOT_BITS = 6,
	SPARSE_SLOTS = 4, /* for each area, so that most are where they are looked for */
	SMALL_COUNT = 32  /* below, clearing and adding up the tables of a sort costs more */
};

/* Items of one area that lie together. */
struct index_chunk {
	struct index_chunk *next;
	size_t count; /* of items, when there is another chunk of its area or a cursor */
	struct index_item items[];
};

/* Memory that chunks are cut from. */
struct index_slab {
	struct index_slab *next;
	size_t used_bytes, capacity_bytes;
	uint64_t room[]; /* aligned as a chunk is */
};

bool index_areas_are_full(const struct index_areas *areas)
{
	return areas->area_count > LIMIT_INDEX_AREAS;
}

/* False when there is no other. */
static bool add_area(struct index_areas *areas, uint64_t number)
{
	if (index_areas_are_full(areas) ||
	    !grow_items((void **)&areas->areas, &areas->area_capacity, areas->area_count,
			sizeof(*areas->areas)))
		return false;
	areas->areas[areas->area_count++] = (struct index_area){ .number = number };
	return true;
}

static bool enlarge_slots(struct index_areas *areas, unsigned int bits)
{
	uint32_t *slots = calloc((size_t)1 << bits, sizeof(*slots));
	uint32_t mask = ((uint32_t)1 << bits) - 1;

	if (!slots)
		return false;
	free(areas->slots);
	areas->slots = slots;
	areas->slot_bits = bits;
	for (uint32_t i = 1; i < areas->area_count; i++) {
		size_t at = (size_t)(index_areas_slot(areas, areas->areas[i].number) - slots);

		while (slots[at])
			at = (at + 1) & mask;
		slots[at] = i;
	}
	return true;
}

bool index_areas_init(struct index_areas *areas)
{
	*areas = (struct index_areas){ 0 };
	return add_area(areas, UINT64_MAX) && enlarge_slots(areas, FEWEST_SLOT_BITS);
}

void index_areas_deinit(struct index_areas *areas)
{
	while (areas->slabs) {
		struct index_slab *next = areas->slabs->next;

		free(areas->slabs);
		areas->slabs = next;
	}
	free(areas->slots);
	free(areas->areas);
	free(areas->large);
	*areas = (struct index_areas){ 0 };
}

static struct index_slab *add_slab(struct index_areas *areas, size_t room_bytes)
{
	struct index_slab *slab = huge_memory_allocate(sizeof(*slab) + room_bytes);

	if (!slab)
		return NULL;
	slab->next = areas->slabs;
	slab->used_bytes = 0;
	slab->capacity_bytes = room_bytes;
	areas->slabs = slab;
	return slab;
}

static size_t chunk_bytes(size_t items)
{
	return sizeof(struct index_chunk) + items * sizeof(struct index_item);
}

void index_areas_reserve(struct index_areas *areas, size_t count)
{
	/* Of each area a few small chunks, and a last one that is not full. */
	if (!areas->slabs && count >= LARGEST_SLAB)
		add_slab(areas, chunk_bytes(count + count / 8));
}

/* What has been added to the last chunk is written down in it. */
static void count_last(struct index_area *area)
{
	if (area->last)
		area->last->count = (size_t)(area->next - area->last->items);
}

static uint32_t count_of(const struct index_area *area)
{
	return area->count_before + (area->last ? (uint32_t)(area->next - area->last->items) : 0);
}

/* An area is likely to get as many as the others have; what then is missing comes in parts. */
static size_t chunk_items(const struct index_areas *areas, const struct index_area *area)
{
	size_t items = area->last ? count_of(area) / 4 : areas->count / areas->area_count;

	items = items < SMALLEST_CHUNK ? SMALLEST_CHUNK : items;
	return items > LARGEST_CHUNK ? LARGEST_CHUNK : items;
}

static bool add_chunk(struct index_areas *areas, struct index_area *area)
{
	size_t items = chunk_items(areas, area), bytes, slab_items = areas->count;
	struct index_slab *slab = areas->slabs;
	struct index_chunk *chunk;

	bytes = chunk_bytes(items);
	slab_items = slab_items < SMALLEST_SLAB ? SMALLEST_SLAB : slab_items;
	slab_items = slab_items > LARGEST_SLAB ? LARGEST_SLAB : slab_items;
	if (!slab || slab->capacity_bytes - slab->used_bytes < bytes)
		slab = add_slab(areas, chunk_bytes(slab_items));
	if (!slab)
		return false;
	chunk = (struct index_chunk *)((char *)slab->room + slab->used_bytes);
	slab->used_bytes += bytes;
	chunk->next = NULL;
	count_last(area);
	area->count_before = count_of(area);
	if (area->last)
		area->last->next = chunk;
	else
		area->first = chunk;
	area->last = chunk;
	area->next = chunk->items;
	area->end = chunk->items + items;
	return true;
}

/* Takes the first slot of those in which the area is looked for; what was there stays on its way.
 */
static void move_to_front(uint32_t *front, uint32_t *slot)
{
	uint32_t held = *front;

	*front = *slot;
	*slot = held;
}

/* NULL when there is none. */
static struct index_area *find_area(struct index_areas *areas, uint64_t number)
{
	uint32_t *front = index_areas_slot(areas, number), *slot = front;
	uint32_t *end = areas->slots + ((size_t)1 << areas->slot_bits);

	while (*slot && areas->areas[*slot].number != number)
		slot = slot + 1 == end ? areas->slots : slot + 1;
	if (!*slot) {
		if (areas->area_count >= ((size_t)1 << areas->slot_bits) / SPARSE_SLOTS)
			return enlarge_slots(areas, areas->slot_bits + 1) ? find_area(areas, number)
									  : NULL;
		if (!add_area(areas, number))
			return NULL;
		*slot = areas->area_count - 1;
	}
	move_to_front(front, slot);
	return &areas->areas[*front];
}

static bool add_large(struct index_areas *areas, uint64_t size_bytes)
{
	if (!grow_items((void **)&areas->large, &areas->large_capacity, areas->large_count,
			sizeof(*areas->large)))
		return false;
	areas->large[areas->large_count++] = (struct index_large){
		.size_bytes = size_bytes,
		.order = (uint32_t)areas->count,
	};
	return true;
}

bool index_areas_add_apart(struct index_areas *areas, const struct numbered_range *range)
{
	struct index_area *area = find_area(areas, range->start >> INDEX_AREA_SHIFT);
	bool is_large = range->size_bytes >= INDEX_ITEM_LARGE;
	uint16_t low = (uint16_t)range->start;

	if (!area || (area->next == area->end && !add_chunk(areas, area)) ||
	    (is_large && !add_large(areas, range->size_bytes)))
		return false;
	area->is_unsorted |= low < area->last_low;
	area->last_low = low;
	*area->next++ = (struct index_item){
		.number = range->number,
		.value = range->value,
		.order = (uint32_t)areas->count++,
		.low = low,
		.size = is_large ? INDEX_ITEM_LARGE : (uint16_t)range->size_bytes,
	};
	return true;
}

static int compare_large(const void *key, const void *element)
{
	uint32_t order = *(const uint32_t *)key;
	const struct index_large *large = element;

	return order < large->order ? -1 : order > large->order;
}

uint64_t index_areas_large(const struct index_areas *areas, const struct index_item *item)
{
	const struct index_large *large = bsearch(&item->order, areas->large, areas->large_count,
						  sizeof(*areas->large), compare_large);

	return large->size_bytes;
}

/* ---- in order ---------------------------------------------------------------------- */

bool index_cursor_begin(struct index_cursor *cursor, struct index_areas *areas)
{
	size_t most = 0;

	*cursor = (struct index_cursor){ .areas = areas };
	for (uint32_t i = 1; i < areas->area_count; i++) {
		struct index_area *area = &areas->areas[i];

		count_last(area);
		if (area->is_unsorted && count_of(area) > most)
			most = count_of(area);
	}
	cursor->order =
		index_sort(&areas->areas[1].number, sizeof(*areas->areas), areas->area_count - 1);
	if (most) {
		cursor->came = malloc(2 * most * sizeof(*cursor->came));
		cursor->keys = malloc(2 * most * sizeof(*cursor->keys));
	}
	if (!cursor->order || (most && (!cursor->came || !cursor->keys)))
		return false;
	cursor->sorted = most ? cursor->came + most : NULL;
	return true;
}

void index_cursor_end(struct index_cursor *cursor)
{
	free(cursor->order);
	free(cursor->came);
	free(cursor->keys);
}

/* Words by their lower half, by the 8 bits at `shift`; stable. */
static void sort_by_byte(const uint64_t *from, uint64_t *to, size_t count, unsigned int shift)
{
	uint32_t places[256] = { 0 }, sum = 0;

	for (size_t i = 0; i < count; i++)
		places[from[i] >> shift & 0xff]++;
	for (size_t i = 0; i < 256; i++) {
		uint32_t here = places[i];

		places[i] = sum;
		sum += here;
	}
	for (size_t i = 0; i < count; i++)
		to[places[from[i] >> shift & 0xff]++] = from[i];
}

static void sort_few(uint64_t *keys, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		uint64_t key = keys[i];
		size_t at = i;

		for (; at && keys[at - 1] > key; at--)
			keys[at] = keys[at - 1];
		keys[at] = key;
	}
}

/* The items of an area, in order. */
static void sort_area(struct index_cursor *cursor, const struct index_area *area)
{
	static const unsigned int low_shift = 32; /* of a key; below is the place of its item */
	size_t area_count = count_of(area), count = 0;
	uint64_t *keys = cursor->keys;

	for (const struct index_chunk *chunk = area->first; chunk; chunk = chunk->next) {
		memcpy(cursor->came + count, chunk->items, chunk->count * sizeof(*chunk->items));
		count += chunk->count;
	}
	for (size_t i = 0; i < area_count; i++)
		keys[i] = (uint64_t)cursor->came[i].low << low_shift | i;
	if (area_count < SMALL_COUNT) {
		sort_few(keys, area_count);
	} else {
		sort_by_byte(keys, keys + area_count, area_count, low_shift);
		sort_by_byte(keys + area_count, keys, area_count, low_shift + 8);
	}
	for (size_t i = 0; i < area_count; i++)
		cursor->sorted[i] = cursor->came[(uint32_t)keys[i]];
	cursor->next = cursor->sorted;
	cursor->end = cursor->sorted + area_count;
}

/* Chunks lie where there was room: the processor cannot tell by itself which one follows. */
static void fetch_chunk(const struct index_chunk *chunk)
{
	for (size_t at = 0; at < FETCHED_BYTES; at += CACHE_LINE_BYTES)
		prefetch((const char *)chunk + at);
}

/* NULL behind the last one. */
static const struct index_area *area_at(const struct index_cursor *cursor, uint32_t i)
{
	return i < cursor->areas->area_count - 1 ? &cursor->areas->areas[1 + cursor->order[i]]
						 : NULL;
}

bool index_cursor_turn(struct index_cursor *cursor)
{
	const struct index_area *area = area_at(cursor, cursor->next_area), *next;

	if (!cursor->chunk) {
		if (!area)
			return false;
		prefetch(area_at(cursor, cursor->next_area + 2));
		next = area_at(cursor, ++cursor->next_area);
		if (next)
			fetch_chunk(next->first);
		cursor->base = area->number << INDEX_AREA_SHIFT;
		if (area->is_unsorted) {
			sort_area(cursor, area);
			return true;
		}
		cursor->chunk = area->first;
	}
	cursor->next = cursor->chunk->items;
	cursor->end = cursor->next + cursor->chunk->count;
	cursor->chunk = cursor->chunk->next;
	if (cursor->chunk)
		fetch_chunk(cursor->chunk);
	return true;
}
