/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/recorded_hits.h"

#include <stdlib.h>

#include "libsym/base/grow.h"
#include "libsym/base/reader.h"

enum {
	PAGE_BITS = 12,
	FIRST_CAPACITY = 1024,
	MOST_PAGES = 1 << 20,   /* 4 GiB of code */
	MOST_LOOKUPS = 1 << 18, /* larger ranges count as hit */
	MOST_WORDS = 1 << 23
};

static const uint64_t user_end = 1ull << 56;

void recorded_hits_deinit(struct recorded_hits *hits)
{
	free(hits->pages);
	free(hits->places[0].items);
	free(hits->places[1].items);
	*hits = (struct recorded_hits){ 0 };
}

static size_t slot_of(const struct recorded_hits *hits, uint64_t page)
{
	size_t slot = (size_t)(page * 0x9e3779b97f4a7c15u >> 20) & (hits->capacity - 1);

	while (hits->pages[slot] && hits->pages[slot] != page)
		slot = (slot + 1) & (hits->capacity - 1);
	return slot;
}

static bool grow(struct recorded_hits *hits)
{
	struct recorded_hits larger = { .capacity = hits->capacity ? 2 * hits->capacity
								   : FIRST_CAPACITY };

	if (hits->count >= MOST_PAGES)
		return false;
	larger.pages = calloc(larger.capacity, sizeof(*larger.pages));
	if (!larger.pages)
		return false;
	for (size_t i = 0; i < hits->capacity; i++)
		if (hits->pages[i])
			larger.pages[slot_of(&larger, hits->pages[i])] = hits->pages[i];
	free(hits->pages);
	hits->pages = larger.pages;
	hits->capacity = larger.capacity;
	return true;
}

static void add_address(struct recorded_hits *hits, uint64_t address)
{
	uint64_t page = address >> PAGE_BITS;
	size_t slot;

	if (!page || address >= user_end || hits->all)
		return;
	if (2 * hits->count >= hits->capacity && !grow(hits)) {
		hits->all = true;
		return;
	}
	slot = slot_of(hits, page);
	hits->count += !hits->pages[slot];
	hits->pages[slot] = page;
}

static void keep_word(struct recorded_words *place, uint64_t word)
{
	if (!(word >> PAGE_BITS) || word >= user_end)
		return;
	if (place->count < MOST_WORDS && grow_items((void **)&place->items, &place->capacity,
						    place->count, sizeof(*place->items)))
		place->items[place->count++] = word;
}

void recorded_hits_add(struct recorded_hits *hits, const struct perf_record *sample)
{
	struct reader reader = reader_over(sample->bytes, sample->size_bytes);
	uint64_t first, second;

	reader_skip(&reader, 8);
	first = reader_u64(&reader);
	second = reader_u64(&reader);
	if (first >> PAGE_BITS != hits->last) {
		hits->last = first >> PAGE_BITS;
		add_address(hits, first);
	}
	add_address(hits, second);
	keep_word(&hits->places[0], first);
	keep_word(&hits->places[1], second);
}

static int by_value(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* How many are below `end`. */
static size_t count_below(const struct recorded_words *place, uint64_t end)
{
	size_t low = 0, high = place->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (place->items[middle] < end)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint64_t count_in(const struct recorded_words *place, uint64_t start, uint64_t end)
{
	return start < end ? count_below(place, end) - count_below(place, start) : 0;
}

void recorded_hits_settle(struct recorded_hits *hits, const struct recorded_maps *maps)
{
	uint64_t mapped[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		struct recorded_words *place = &hits->places[i];

		if (place->count)
			qsort(place->items, place->count, sizeof(*place->items), by_value);
		for (size_t j = 0; j < maps->count; j++)
			if (!maps->items[j].is_data)
				mapped[i] += count_in(place, maps->items[j].start_address,
						      maps->items[j].end_address);
	}
	hits->addresses = &hits->places[mapped[1] > mapped[0]];
}

uint64_t recorded_hits_count(const struct recorded_hits *hits, uint64_t start_address,
			     uint64_t end_address)
{
	return hits->addresses ? count_in(hits->addresses, start_address, end_address) : 0;
}

bool recorded_hits_in(const struct recorded_hits *hits, uint64_t start_address,
		      uint64_t end_address)
{
	uint64_t page = start_address >> PAGE_BITS, end = (end_address - 1) >> PAGE_BITS;

	if (hits->all || end - page > MOST_LOOKUPS)
		return true;
	for (; hits->capacity && page <= end; page++)
		if (page && hits->pages[slot_of(hits, page)])
			return true;
	return false;
}
