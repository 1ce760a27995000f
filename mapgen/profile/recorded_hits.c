/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/recorded_hits.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/base/reader.h"

enum {
	PAGE_BITS = 12,
	MOST_WORDS = 1 << 21
};

static const uint64_t user_end = 1ull << 56;

void recorded_hits_deinit(struct recorded_hits *hits)
{
	address_table_deinit(&hits->places[0].table);
	address_table_deinit(&hits->places[1].table);
	*hits = (struct recorded_hits){ 0 };
}

static void count_waiting(struct recorded_hits *hits, struct recorded_words *place)
{
	for (size_t i = 0; i < place->waiting_count && !hits->all; i++) {
		struct recorded_word *word = &place->waiting[i];
		struct address_slot *slot = NULL;

		if (place->table.count < MOST_WORDS)
			slot = address_table_take(&place->table, word->address);
		if (slot)
			slot->value = (void *)((uintptr_t)slot->value + word->samples);
		hits->all = !slot;
	}
	place->waiting_count = 0;
}

static void keep_word(struct recorded_hits *hits, struct recorded_words *place, uint64_t word)
{
	size_t count = place->waiting_count;

	if (!(word >> PAGE_BITS) || word >= user_end || hits->all)
		return;
	if (count && place->waiting[count - 1].address == word) {
		place->waiting[count - 1].samples++;
		return;
	}
	if (count == RECORDED_WORDS_WAITING)
		count_waiting(hits, place);
	address_table_prefetch(&place->table, word);
	place->waiting[place->waiting_count++] = (struct recorded_word){ word, 1 };
}

void recorded_hits_add(struct recorded_hits *hits, const struct perf_record *sample)
{
	struct reader reader = reader_over(sample->bytes, sample->size_bytes);

	reader_skip(&reader, 8);
	for (int i = 0; i < 2; i++)
		keep_word(hits, &hits->places[i], reader_u64(&reader));
}

static int by_address(const void *left, const void *right)
{
	return ascending_compare(&((const struct address_slot *)left)->address,
				 &((const struct address_slot *)right)->address);
}

static void settle(struct address_table *table)
{
	uintptr_t sum = 0;
	size_t kept = 0;

	for (size_t i = 0; i < table->capacity; i++)
		if (table->slots[i].address)
			table->slots[kept++] = table->slots[i];
	if (kept)
		qsort(table->slots, kept, sizeof(*table->slots), by_address);
	for (size_t i = 0; i < kept; i++) {
		sum += (uintptr_t)table->slots[i].value;
		table->slots[i].value = (void *)sum;
	}
}

/* How many samples lie below `end`. */
static uint64_t count_below(const struct recorded_words *place, uint64_t end)
{
	const struct address_slot *slots = place->table.slots;
	size_t low = 0, high = place->table.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (slots[middle].address < end)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? (uintptr_t)slots[low - 1].value : 0;
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

		count_waiting(hits, place);
		settle(&place->table);
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
