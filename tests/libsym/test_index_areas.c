/* SPDX-License-Identifier: MIT */
#include "libsym/index_areas.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/support/alloc_fail.h"

static const uint64_t area_bytes = (uint64_t)1 << INDEX_AREA_SHIFT;

struct list {
	struct index_symbol *items;
	size_t count;
};

static uint64_t noise(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static struct list new_list(size_t count)
{
	return (struct list){ .items = calloc(count, sizeof(struct index_symbol)) };
}

static void put(struct list *list, uint64_t start, uint64_t size_bytes)
{
	size_t i = list->count++;

	list->items[i] = (struct index_symbol){
		.start = start,
		.size_bytes = size_bytes,
		.number = (uint32_t)i * 3,
		.value = (uint32_t)(i % 5),
		.order = (uint32_t)i,
	};
}

static int compare(const void *left, const void *right)
{
	const struct index_symbol *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

/* qsort() by start and order is the oracle. Frees the list. */
static void expect_in_order(struct list *list)
{
	struct index_areas areas;
	struct index_cursor cursor;
	struct index_symbol symbol;

	cr_assert(index_areas_init(&areas));
	for (size_t i = 0; i < list->count; i++)
		cr_assert(index_areas_add(
			&areas,
			&(struct numbered_range){ list->items[i].start, list->items[i].size_bytes,
						  list->items[i].number, list->items[i].value }));
	cr_assert_eq(areas.count, list->count);
	qsort(list->items, list->count, sizeof(*list->items), compare);
	cr_assert(index_cursor_begin(&cursor, &areas));
	for (size_t i = 0; i < list->count; i++) {
		const struct index_symbol *expected = &list->items[i];

		cr_assert(index_cursor_next(&cursor, &symbol));
		cr_assert(symbol.start == expected->start && symbol.order == expected->order &&
				  symbol.size_bytes == expected->size_bytes &&
				  symbol.number == expected->number &&
				  symbol.value == expected->value,
			  "symbol %zu of %zu", i, list->count);
	}
	cr_assert_not(index_cursor_next(&cursor, &symbol));
	cr_assert_not(index_cursor_next(&cursor, &symbol), "and so it stays");
	index_cursor_end(&cursor);
	index_areas_deinit(&areas);
	free(list->items);
}

Test(index_areas, keeps_what_comes_in_order)
{
	for (size_t count = 0; count < 3000; count += count < 10 ? 1 : 331) {
		struct list list = new_list(count + 1);

		for (size_t i = 0; i < count; i++)
			put(&list, 0x7f0000000000 + i * 176, 48);
		expect_in_order(&list);
	}
}

Test(index_areas, takes_heaps_in_turns)
{
	enum {
		HEAPS = 100,
		EACH = 2000
	};
	struct list list = new_list((size_t)HEAPS * EACH);
	uint64_t heaps[HEAPS];

	for (uint64_t i = 0; i < HEAPS; i++)
		heaps[i] = (noise() & 0xffff) << 28;
	for (size_t i = 0; i < (size_t)HEAPS * EACH; i++) {
		uint64_t *heap = &heaps[noise() % HEAPS];

		put(&list, *heap, 16);
		*heap += 16 + noise() % 400;
	}
	expect_in_order(&list);
}

Test(index_areas, sorts_what_comes_in_no_order)
{
	/* So many starts, so many areas. */
	static const size_t counts[] = { 2, 31, 32, 33, 1000, 100000 };
	static const uint64_t spans[] = { 1, 7, 4000, 1 << 16, 1 << 20, (uint64_t)1 << 40 };

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		for (size_t j = 0; j < sizeof(spans) / sizeof(spans[0]); j++) {
			struct list list = new_list(counts[i]);

			for (size_t k = 0; k < counts[i]; k++)
				put(&list, 0x7ffff000 + noise() % spans[j], noise() % 100);
			expect_in_order(&list);
		}
}

Test(index_areas, has_places_for_areas_at_both_ends_of_the_address_space)
{
	struct list list = new_list(6);

	put(&list, UINT64_MAX, 0);
	put(&list, UINT64_MAX - area_bytes + 1, 1);
	put(&list, UINT64_MAX - area_bytes, 1);
	put(&list, area_bytes, 1);
	put(&list, area_bytes - 1, 1);
	put(&list, 0, 1);
	expect_in_order(&list);
}

Test(index_areas, keeps_sizes_whatever_they_are)
{
	static const uint64_t sizes[] = { 0,       1,          UINT16_MAX - 1, UINT16_MAX,
					  1 << 16, UINT32_MAX, 1ull << 32,     UINT64_MAX >> 1 };
	struct list list = new_list(64);

	for (size_t i = 0; i < 64; i++)
		put(&list, 0x10000 * (noise() % 8), sizes[i % 8]);
	expect_in_order(&list);
}

static bool add_some(void *context)
{
	struct index_areas areas;
	struct index_cursor cursor = { 0 };
	struct index_symbol symbol;
	bool done = index_areas_init(&areas);
	size_t count = 0;

	(void)context;
	for (uint64_t i = 0; done && i < 200; i++)
		done = index_areas_add(&areas,
				       &(struct numbered_range){ (i * 7 % 200) * (area_bytes / 4),
								 i << 14, 0, 0 });
	if (done) {
		done = index_cursor_begin(&cursor, &areas);
		while (done && index_cursor_next(&cursor, &symbol))
			count++;
		index_cursor_end(&cursor);
		cr_assert_eq(count, done ? 200 : 0);
	}
	index_areas_deinit(&areas);
	return done;
}

Test(index_areas, survives_every_allocation_that_fails)
{
	cr_expect_gt(alloc_fail_each(add_some, NULL), 5);
	cr_expect(add_some(NULL));
}
