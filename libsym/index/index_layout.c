/* SPDX-License-Identifier: MIT */
#include "libsym/index/index_layout.h"

#include <stdlib.h>

#include "libsym/base/grow.h"
#include "libsym/base/huge_memory.h"

enum {
	LARGEST_SIZE = (1 << 24) - 1,
	LARGEST_VALUE = UINT8_MAX,
	ROWS_IN_BUCKET = 2, /* at least, on average; at most twice as many */
	/* A gap of this size ends a region: buckets of equal width need uniform density. */
	GAP_BYTES = 1 << 20,
	MOST_REGIONS = 256
};

bool index_rows_add(struct index_rows *rows, const struct index_piece *piece)
{
	struct index_row row = { .start = piece->start, .number = piece->number };

	if (!grow_items((void **)&rows->items, &rows->capacity, rows->count, sizeof(row)))
		return false;
	if (piece->start == piece->symbol_start && piece->size_bytes == piece->symbol_size_bytes &&
	    piece->size_bytes <= LARGEST_SIZE && piece->size_bytes &&
	    piece->value <= LARGEST_VALUE) {
		row.size_bytes = (uint32_t)piece->size_bytes & LARGEST_SIZE;
		row.value = (uint8_t)piece->value;
	} else {
		if (!grow_items((void **)&rows->details, &rows->detail_capacity, rows->detail_count,
				sizeof(*rows->details)))
			return false;
		row.number = (uint32_t)rows->detail_count;
		rows->details[rows->detail_count++] = *piece;
	}
	rows->items[rows->count++] = row;
	return true;
}

void index_rows_deinit(struct index_rows *rows)
{
	free(rows->items);
	free(rows->details);
	*rows = (struct index_rows){ 0 };
}

/* ---- buckets ---------------------------------------------------------------------- */

/* Is the row the first of a region? */
static bool begins_region(const struct index *index, size_t row)
{
	const struct index_row *items = index->rows.items;

	return !row || (items[row].start - items[row - 1].start >= GAP_BYTES &&
			index->region_count < MOST_REGIONS);
}

static bool make_regions(struct index *index)
{
	const struct index_rows *rows = &index->rows;
	size_t capacity = 0;

	for (size_t i = 0; i < rows->count; i++) {
		if (!begins_region(index, i))
			continue;
		if (!grow_items((void **)&index->regions, &capacity, index->region_count,
				sizeof(*index->regions)))
			return false;
		index->regions[index->region_count++] =
			(struct index_region){ .base = rows->items[i].start,
					       .first_row = (uint32_t)i };
	}
	return true;
}

/* The row after the last one of a region. */
static size_t end_of_region(const struct index *index, size_t region)
{
	return region + 1 < index->region_count ? index->regions[region + 1].first_row
						: index->rows.count;
}

static size_t bucket_count(const struct index_region *region)
{
	return (size_t)(region->last >> region->shift) + 1;
}

/* Makes the buckets as narrow as the number of rows allows. Returns their number. */
static size_t choose_width(const struct index *index, size_t number)
{
	struct index_region *region = &index->regions[number];
	size_t rows = end_of_region(index, number) - region->first_row;
	struct index_piece last = index_rows_at(&index->rows, region->first_row + rows - 1);

	region->last = last.start - region->base;
	region->reach_bytes = region->last + last.size_bytes;
	while (region->last >> region->shift > rows / ROWS_IN_BUCKET)
		region->shift++;
	return bucket_count(region);
}

static void fill_buckets(const struct index *index, size_t number, uint32_t *buckets)
{
	const struct index_region *region = &index->regions[number];
	size_t row = region->first_row, end = end_of_region(index, number);
	size_t count = bucket_count(region);

	for (size_t i = 0; i < count; i++) {
		while (row < end &&
		       (index->rows.items[row].start - region->base) >> region->shift < i)
			row++;
		buckets[i] = (uint32_t)row;
	}
	buckets[count] = (uint32_t)end;
}

bool index_lay_out(struct index *index)
{
	size_t count = 0, i;

	if (!make_regions(index))
		return false;
	for (i = 0; i < index->region_count; i++)
		count += choose_width(index, i) + 1;
	index->buckets = huge_memory_allocate(count * sizeof(*index->buckets));
	if (!index->buckets)
		return false;
	for (i = count = 0; i < index->region_count; i++) {
		index->regions[i].buckets = index->buckets + count;
		fill_buckets(index, i, index->buckets + count);
		count += bucket_count(&index->regions[i]) + 1;
	}
	return true;
}
