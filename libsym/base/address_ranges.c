/* SPDX-License-Identifier: MIT */
#include "libsym/base/address_ranges.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"

bool address_ranges_append(struct address_ranges *ranges, uint64_t start, uint64_t end)
{
	struct address_range *items;

	if (end <= start)
		return true;
	if (ranges->count && ranges->items[ranges->count - 1].end == start) {
		ranges->items[ranges->count - 1].end = end;
		return true;
	}
	items = reallocarray(ranges->items, ranges->count + 1, sizeof(*items));
	if (!items)
		return false;
	items[ranges->count++] = (struct address_range){ start, end };
	ranges->items = items;
	return true;
}

static int address_ranges_compare(const void *left, const void *right)
{
	const struct address_range *a = left, *b = right;

	return a->start < b->start ? -1 : a->start > b->start;
}

void address_ranges_unite(struct address_ranges *ranges)
{
	struct address_range *last = ranges->items;

	if (!ranges->count)
		return;
	qsort(ranges->items, ranges->count, sizeof(*ranges->items), address_ranges_compare);
	for (size_t i = 1; i < ranges->count; i++) {
		const struct address_range *range = &ranges->items[i];

		if (range->start > last->end)
			*++last = *range;
		else if (range->end > last->end)
			last->end = range->end;
	}
	ranges->count = (size_t)(last - ranges->items) + 1;
}

bool address_ranges_copy(const struct address_ranges *ranges, struct address_ranges *ret)
{
	struct address_range *items = calloc(ranges->count + 1, sizeof(*items));

	if (!items)
		return false;
	if (ranges->count)
		memcpy(items, ranges->items, ranges->count * sizeof(*items));
	*ret = (struct address_ranges){ items, ranges->count };
	return true;
}

void address_ranges_deinit(struct address_ranges *ranges)
{
	free(ranges->items);
	*ranges = (struct address_ranges){ 0 };
}

size_t address_ranges_first_ending_after(const struct address_ranges *ranges, uint64_t start)
{
	return ASCENDING_COUNT(ranges->count, i, ranges->items[i].end <= start);
}

bool address_ranges_contain(const struct address_ranges *ranges, uint64_t start,
			    uint64_t size_bytes)
{
	size_t at = address_ranges_first_ending_after(ranges, start);

	return at < ranges->count && ranges->items[at].start <= start &&
	       ranges->items[at].end - start >= size_bytes;
}

bool address_ranges_overlap(const struct address_ranges *ranges, uint64_t start, uint64_t end)
{
	size_t at = address_ranges_first_ending_after(ranges, start);

	return at < ranges->count && ranges->items[at].start < end;
}
