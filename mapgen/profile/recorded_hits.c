/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/recorded_hits.h"

#include <stdlib.h>

#include "libsym/base/reader.h"

enum {
	PAGE_BITS = 12,
	FIRST_CAPACITY = 1024,
	MOST_PAGES = 1 << 20,  /* 4 GiB of code */
	MOST_LOOKUPS = 1 << 18 /* larger ranges count as hit */
};

static const uint64_t user_end = 1ull << 56;

void recorded_hits_deinit(struct recorded_hits *hits)
{
	free(hits->pages);
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
