/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/recorded_hits.h"

#include <stdlib.h>

#include "libsym/base/reader.h"

enum {
	PAGE_BITS = 12,
	FIRST_CAPACITY = 1024,
	MOST_WORDS = 1 << 22
};

static const uint64_t user_end = 1ull << 56;

void recorded_hits_deinit(struct recorded_hits *hits)
{
	free(hits->places[0].items);
	free(hits->places[1].items);
	*hits = (struct recorded_hits){ 0 };
}

/* Where a word is, or would be: there is a free one. */
static struct recorded_word *slot_of(const struct recorded_words *place, uint64_t word)
{
	size_t slot = (size_t)(word * 0x9e3779b97f4a7c15u >> 32) & (place->capacity - 1);

	while (place->items[slot].word && place->items[slot].word != word)
		slot = (slot + 1) & (place->capacity - 1);
	return &place->items[slot];
}

static bool make_room(struct recorded_words *place)
{
	struct recorded_words larger = { .count = place->count,
					 .capacity = place->capacity ? 2 * place->capacity
								     : FIRST_CAPACITY };

	if (2 * place->count < place->capacity)
		return true;
	if (place->count >= MOST_WORDS)
		return false;
	larger.items = calloc(larger.capacity, sizeof(*larger.items));
	if (!larger.items)
		return false;
	for (size_t i = 0; i < place->capacity; i++)
		if (place->items[i].word)
			*slot_of(&larger, place->items[i].word) = place->items[i];
	free(place->items);
	*place = larger;
	return true;
}

static void keep_word(struct recorded_hits *hits, struct recorded_words *place, uint64_t word)
{
	if (!(word >> PAGE_BITS) || word >= user_end || hits->all)
		return;
	if (!place->last || place->last->word != word) {
		if (!make_room(place)) {
			hits->all = true;
			return;
		}
		place->last = slot_of(place, word);
		place->count += !place->last->word;
		place->last->word = word;
	}
	place->last->count++;
}

void recorded_hits_add(struct recorded_hits *hits, const struct perf_record *sample)
{
	struct reader reader = reader_over(sample->bytes, sample->size_bytes);

	reader_skip(&reader, 8);
	for (int i = 0; i < 2; i++)
		keep_word(hits, &hits->places[i], reader_u64(&reader));
}

static int by_word(const void *left, const void *right)
{
	uint64_t a = ((const struct recorded_word *)left)->word;
	uint64_t b = ((const struct recorded_word *)right)->word;

	return (a > b) - (a < b);
}

static void settle(struct recorded_words *place)
{
	size_t kept = 0;

	for (size_t i = 0; i < place->capacity; i++)
		if (place->items[i].word)
			place->items[kept++] = place->items[i];
	if (kept)
		qsort(place->items, kept, sizeof(*place->items), by_word);
	for (size_t i = 1; i < kept; i++)
		place->items[i].count += place->items[i - 1].count;
}

/* How many samples lie below `end`. */
static uint64_t count_below(const struct recorded_words *place, uint64_t end)
{
	size_t low = 0, high = place->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (place->items[middle].word < end)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? place->items[low - 1].count : 0;
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

		settle(place);
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
