/* SPDX-License-Identifier: MIT */
/* Looks up in a frozen index: region, bucket, row (index_layout.h). */
#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/index/index_layout.h"

enum {
	FEW_ROWS = 16
};

void index_destroy(struct index *index)
{
	if (!index)
		return;
	index_rows_deinit(&index->rows);
	free(index->regions);
	free(index->buckets);
	string_pool_destroy(index->names);
	budget_release(index->account, index->charged_bytes);
	free(index);
}

size_t index_count(const struct index *index)
{
	return index->rows.count;
}

void index_at(const struct index *index, size_t i, struct index_entry *ret)
{
	struct index_piece piece = index_rows_at(&index->rows, i);

	*ret = (struct index_entry){
		.start = piece.start,
		.size_bytes = piece.size_bytes,
		.symbol_start = piece.symbol_start,
		.symbol_size_bytes = piece.symbol_size_bytes,
		.name = index->names ? string_pool_at(index->names, piece.number) : "",
		.number = piece.number,
		.value = piece.value,
	};
}

/* How many regions start at or below the position, found without a branch on the position. */
static size_t regions_up_to(const struct index *index, uint64_t position)
{
	const struct index_region *region = index->regions;
	size_t count = index->region_count;

	while (count > 1) {
		size_t half = count / 2;

		region = region[half].base <= position ? region + half : region;
		count -= half;
	}
	return (size_t)(region - index->regions) + (count && region->base <= position);
}

/* How many of these rows start at or below the position. */
static size_t rows_up_to(const struct index_row *rows, size_t count, uint64_t position)
{
	size_t found = 0;

	if (count > FEW_ROWS)
		return ascending_items_up_to(rows, count, sizeof(*rows), position);
	/* No branch depends on the position: the processor could not predict it. */
	for (size_t i = 0; i < count; i++)
		found += rows[i].start <= position;
	return found;
}

/* The last row that starts at or below the position; INDEX_NONE if there is none. */
static size_t row_below(const struct index *index, uint64_t position)
{
	size_t number = regions_up_to(index, position);
	const struct index_row *items = index->rows.items;
	const struct index_region *region;
	const uint32_t *bucket;
	uint64_t distance;

	if (!number)
		return INDEX_NONE;
	region = &index->regions[number - 1];
	distance = position - region->base;
	if (distance >= region->reach_bytes)
		return INDEX_NONE;
	bucket = &region->buckets[(distance < region->last ? distance : region->last) >>
				  region->shift];
	/* The row in front of the bucket may reach into it. */
	return (size_t)bucket[0] - 1 +
	       rows_up_to(items + bucket[0], bucket[1] - bucket[0], position);
}

size_t index_look_up(const struct index *index, uint64_t position, struct index_entry *ret)
{
	size_t row = row_below(index, position);
	struct index_entry entry;

	if (row == INDEX_NONE)
		return INDEX_NONE;
	index_at(index, row, &entry);
	if (position - entry.start >= entry.size_bytes)
		return INDEX_NONE;
	*ret = entry;
	return row;
}
