/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/recorded_hits.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/base/reader.h"

enum {
	PAGE_BITS = 12,
	MOST_WORDS = 1 << 23
};

static const uint64_t user_end = 1ull << 56;

void recorded_hits_deinit(struct recorded_hits *hits)
{
	free(hits->places[0].items);
	free(hits->places[1].items);
	*hits = (struct recorded_hits){ 0 };
}

static void keep_word(struct recorded_hits *hits, struct recorded_words *place, uint64_t word)
{
	if (!(word >> PAGE_BITS) || word >= user_end || hits->all)
		return;
	hits->all =
		place->count == MOST_WORDS || !grow_items((void **)&place->items, &place->capacity,
							  place->count, sizeof(*place->items));
	if (!hits->all)
		place->items[place->count++] = word;
}

void recorded_hits_add(struct recorded_hits *hits, const struct perf_record *sample)
{
	struct reader reader = reader_over(sample->bytes, sample->size_bytes);

	reader_skip(&reader, 8);
	for (int i = 0; i < 2; i++)
		keep_word(hits, &hits->places[i], reader_u64(&reader));
}

static uint64_t count_in(const struct recorded_words *place, uint64_t start, uint64_t end)
{
	return start < end ? ascending_count_below(place->items, place->count, end) -
				     ascending_count_below(place->items, place->count, start)
			   : 0;
}

void recorded_hits_settle(struct recorded_hits *hits, const struct recorded_maps *maps)
{
	uint64_t mapped[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		struct recorded_words *place = &hits->places[i];

		ascending_sort(place->items, place->count);
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
	const uint64_t page_bytes = (uint64_t)1 << PAGE_BITS;
	uint64_t start = start_address & ~(page_bytes - 1);
	uint64_t end = (end_address + page_bytes - 1) & ~(page_bytes - 1);

	return hits->all || count_in(&hits->places[0], start, end) ||
	       count_in(&hits->places[1], start, end);
}
