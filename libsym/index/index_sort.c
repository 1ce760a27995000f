/* SPDX-License-Identifier: MIT */
/*
 * A radix sort of 64-bit words: as many bits of the position as fit, above the position's number.
 * The positions of one process usually differ in fewer bits than that. Otherwise a second sort by
 * the remaining bits follows.
 */
#include "libsym/index/index_sort.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/huge_memory.h"

enum {
	LARGEST_DIGIT_BITS = 11, /* 2,048 write positions stay in the L2 cache */
	SMALL_DIGIT_BITS = 8,
	MOST_ITEM_BYTES = 64,
	SMALL_COUNT = 1 << 14 /* below this, clearing and summing the larger tables costs more */
};

struct words {
	uint64_t *from, *to;
	size_t count;
};

/* One stable pass over the digit at `shift`; swaps the two buffers. */
static void sort_by_digit(struct words *words, unsigned int shift, unsigned int bits)
{
	uint32_t places[1 << LARGEST_DIGIT_BITS];
	uint64_t mask = ((uint64_t)1 << bits) - 1;
	uint64_t *from = words->from, *to = words->to;
	uint32_t sum = 0;
	size_t i;

	memset(places, 0, sizeof(*places) << bits);
	for (i = 0; i < words->count; i++)
		places[from[i] >> shift & mask]++;
	for (i = 0; i <= mask; i++) {
		uint32_t here = places[i];

		places[i] = sum;
		sum += here;
	}
	for (i = 0; i < words->count; i++)
		to[places[from[i] >> shift & mask]++] = from[i];
	words->from = to;
	words->to = from;
}

/* Sorts by the bits from `low` on. */
static void sort_words(struct words *words, unsigned int low)
{
	unsigned int bits = words->count < SMALL_COUNT ? SMALL_DIGIT_BITS : LARGEST_DIGIT_BITS;
	uint64_t differing = 0;
	size_t i;

	for (i = 1; i < words->count; i++)
		differing |= words->from[i] ^ words->from[0];
	for (differing >>= low; differing; differing >>= bits, low += bits) {
		unsigned int same = (unsigned int)__builtin_ctzll(differing);

		differing >>= same;
		low += same;
		sort_by_digit(words, low, bits < 64 - low ? bits : 64 - low);
	}
}

static uint64_t position_at(const uint64_t *positions, size_t stride_bytes, size_t i)
{
	return *(const uint64_t *)((const char *)positions + i * stride_bytes);
}

/* The bits in which positions differ; 0 if they are in ascending order already. */
static uint64_t differing_bits(const uint64_t *positions, size_t stride_bytes, size_t count)
{
	uint64_t differing = 0, last = 0;
	bool is_sorted = true;

	for (size_t i = 0; i < count; i++) {
		uint64_t position = position_at(positions, stride_bytes, i);

		differing |= position ^ positions[0];
		is_sorted &= position >= last;
		last = position;
	}
	return is_sorted ? 0 : differing;
}

uint32_t *index_sort(const uint64_t *positions, size_t stride_bytes, size_t count)
{
	uint32_t *numbers = huge_memory_allocate(count * sizeof(*numbers));
	AUTO_FREE uint64_t *room = huge_memory_allocate(2 * count * sizeof(*room));
	struct words words = { .from = room, .to = room + count, .count = count };
	uint64_t differing;
	unsigned int number_bits = 1, done = 0;
	size_t i;

	if (!numbers || !room) {
		free(numbers);
		return NULL;
	}
	while (count >> number_bits)
		number_bits++;
	for (i = 0; i < count; i++)
		numbers[i] = (uint32_t)i;
	differing = differing_bits(positions, stride_bytes, count);
	/* Low bits first: the second sort keeps equal high bits in order. */
	for (; done < 64 && differing >> done; done += 64 - number_bits) {
		for (i = 0; i < count; i++) {
			uint64_t position = position_at(positions, stride_bytes, numbers[i]);

			words.from[i] = position >> done << number_bits | numbers[i];
		}
		sort_words(&words, number_bits);
		for (i = 0; i < count; i++)
			numbers[i] = (uint32_t)(words.from[i] & (((uint64_t)1 << number_bits) - 1));
	}
	return numbers;
}

bool index_sort_items(void *items, size_t item_bytes, size_t count)
{
	uint32_t *order AUTO_FREE = index_sort(items, item_bytes, count);
	char *at = items, held[MOST_ITEM_BYTES];

	/* Follows each cycle of the permutation. */
	for (size_t i = 0, to, from; order && i < count; i++) {
		memcpy(held, at + i * item_bytes, item_bytes);
		for (to = i; (from = order[to]) != i; to = from) {
			memcpy(at + to * item_bytes, at + from * item_bytes, item_bytes);
			order[to] = (uint32_t)to;
		}
		memcpy(at + to * item_bytes, held, item_bytes);
		order[to] = (uint32_t)to;
	}
	return order;
}
