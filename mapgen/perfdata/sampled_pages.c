/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/sampled_pages.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/base/reader.h"

enum {
	PAGE_BITS = 12,
	MOST_WORDS = 1 << 21
};

static const uint64_t user_end = 1ull << 56;

/* A process id has 22 bits (PID_MAX_LIMIT); the page number has the others. */
enum {
	PID_BITS = 22,
	PAGE_NUMBER_BITS = 64 - PID_BITS
};

void sampled_pages_deinit(struct sampled_pages *hits)
{
	for (int i = 0; i < 2; i++) {
		address_table_deinit(&hits->places[i].table);
		address_table_deinit(&hits->places[i].pages);
	}
	*hits = (struct sampled_pages){ 0 };
}

static bool count_in_table(struct address_table *table, uint64_t key)
{
	struct range_slot *slot = NULL;

	if (table->count < MOST_WORDS)
		slot = address_table_slot(table, key);
	if (slot)
		slot->value = (void *)((uintptr_t)slot->value + 1);
	return slot != NULL;
}

/* 0: `numbers` cannot be a process and a thread in it. */
static uint64_t page_key(uint64_t address, uint64_t numbers)
{
	uint64_t pid = (uint32_t)numbers, tid = numbers >> 32;
	uint64_t page = address >> PAGE_BITS;

	if (!pid || !tid || pid >> PID_BITS || tid >> PID_BITS || page >> PAGE_NUMBER_BITS)
		return 0;
	return pid << PAGE_NUMBER_BITS | page;
}

static void count_word(struct sampled_pages *hits, struct recorded_words *place, uint64_t word,
		       uint64_t next_word)
{
	uint64_t key;

	if (!(word >> PAGE_BITS) || word >= user_end || hits->all)
		return;
	key = page_key(word, next_word);
	place->with_process += key != 0;
	hits->all = !count_in_table(&place->table, word) ||
		    (key && !count_in_table(&place->pages, key));
}

void sampled_pages_add(struct sampled_pages *hits, const struct perf_record *sample)
{
	struct reader reader = reader_over(sample->bytes, sample->size_bytes);
	uint64_t words[3];

	reader_skip(&reader, 8);
	for (int i = 0; i < 3; i++)
		words[i] = reader_u64(&reader);
	for (int i = 0; i < 2; i++)
		count_word(hits, &hits->places[i], words[i], words[i + 1]);
}

static int by_address(const void *left, const void *right)
{
	return ascending_compare(&((const struct range_slot *)left)->address,
				 &((const struct range_slot *)right)->address);
}

static void sampled_pages_sort(struct address_table *table)
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

/* Number of samples below `end`. */
static uint64_t count_below(const struct recorded_words *place, uint64_t end)
{
	const struct range_slot *slots = place->table.slots;
	size_t low = ascending_items_below(slots, place->table.count, sizeof(*slots), end);

	return low ? (uintptr_t)slots[low - 1].value : 0;
}

static uint64_t count_in(const struct recorded_words *place, uint64_t start, uint64_t end)
{
	return start < end ? count_below(place, end) - count_below(place, start) : 0;
}

void sampled_pages_settle(struct sampled_pages *hits, const struct recorded_maps *maps)
{
	uint64_t mapped[2] = { 0 };

	for (int i = 0; i < 2; i++) {
		struct recorded_words *place = &hits->places[i];

		sampled_pages_sort(&place->table);
		for (size_t j = 0; j < maps->count; j++)
			if (!maps->items[j].is_data)
				mapped[i] += count_in(place, maps->items[j].start_address,
						      maps->items[j].end_address);
	}
	/* When no mapping was recorded, the process ids show which place is right. */
	if (mapped[0] == mapped[1])
		hits->addresses =
			&hits->places[hits->places[1].with_process > hits->places[0].with_process];
	else
		hits->addresses = &hits->places[mapped[1] > mapped[0]];
}

struct recorded_page *sampled_pages_pages(const struct sampled_pages *hits, size_t *count_ret)
{
	const struct address_table *table = hits->addresses ? &hits->addresses->pages : NULL;
	struct recorded_page *pages;
	size_t count = 0;

	if (!table || hits->all)
		return NULL;
	if (table->count)
		qsort(table->slots, table->capacity, sizeof(*table->slots), by_address);
	pages = calloc(table->count + 1, sizeof(*pages));
	for (size_t i = 0; pages && i < table->capacity; i++) {
		const struct range_slot *slot = &table->slots[i];
		const uint64_t page_mask = ((uint64_t)1 << PAGE_NUMBER_BITS) - 1;

		if (slot->address)
			pages[count++] = (struct recorded_page){
				.pid = (int32_t)(slot->address >> PAGE_NUMBER_BITS),
				.address = (slot->address & page_mask) << PAGE_BITS,
				.samples = (uintptr_t)slot->value,
			};
	}
	*count_ret = count;
	return pages;
}

uint64_t sampled_pages_count(const struct sampled_pages *hits, uint64_t start_address,
			     uint64_t end_address)
{
	return hits->addresses ? count_in(hits->addresses, start_address, end_address) : 0;
}

bool sampled_pages_in(const struct sampled_pages *hits, uint64_t start_address,
		      uint64_t end_address)
{
	const uint64_t page_bytes = (uint64_t)1 << PAGE_BITS;
	uint64_t start = start_address & ~(page_bytes - 1);
	uint64_t end = (end_address + page_bytes - 1) & ~(page_bytes - 1);

	return hits->all || count_in(&hits->places[0], start, end) ||
	       count_in(&hits->places[1], start, end);
}
