/* SPDX-License-Identifier: MIT */
/*
 * Rows of symbols, 16 bytes each: the memory of a builder (in the order of adding) and of a frozen
 * index (ascending and disjoint). What does not fit into a row stands in `details`: symbols of
 * 16 MiB and more or without a size, pieces that are not the whole symbol, large values.
 *
 * A frozen index is divided into regions, which begin after gaps. A region is divided into buckets
 * of equal width, a power of two. A bucket stores the first row that starts in it or after it. So
 * the row of a position is found in a few rows between two buckets, by binary search.
 */
#ifndef LIBSYM_INDEX_INDEX_LAYOUT_H
#define LIBSYM_INDEX_INDEX_LAYOUT_H

#include "libsym/index/index.h"
#include "libsym/index/string_pool.h"

struct index_row {
	uint64_t start;
	uint32_t number;          /* of the name, or of the row in `details` */
	uint32_t size_bytes : 24; /* 0: see `details` */
	uint32_t value : 8;
};

_Static_assert(sizeof(struct index_row) == 16, "four rows in a cache line");

/* One piece of an interval, as it is stored. */
struct index_piece {
	uint64_t start, size_bytes;
	uint64_t symbol_start, symbol_size_bytes;
	uint32_t number, value;
};

struct index_rows {
	struct index_row *items;
	struct index_piece *details;
	size_t count, capacity, detail_count, detail_capacity;
};

/* Appends a piece. Returns false if out of memory. */
bool index_rows_add(struct index_rows *rows, const struct index_piece *piece);

static inline struct index_piece index_rows_at(const struct index_rows *rows, size_t i)
{
	struct index_row row = rows->items[i];

	return row.size_bytes ? (struct index_piece){ row.start,      row.size_bytes, row.start,
						      row.size_bytes, row.number,     row.value }
			      : rows->details[row.number];
}

void index_rows_deinit(struct index_rows *rows);

struct index_region {
	uint64_t base;        /* start of its first row */
	uint64_t last;        /* start of its last row, relative to `base` */
	uint64_t reach_bytes; /* end of its last row, relative to `base` */
	const uint32_t *buckets;
	uint32_t first_row;
	uint32_t shift; /* width of a bucket: 1 << shift bytes */
};

struct index {
	struct budget_account *account; /* charged with `charged_bytes`; NULL: none */
	uint64_t charged_bytes;
	struct index_rows rows;
	struct index_region *regions; /* ascending; an empty index has none */
	size_t region_count;
	uint32_t *buckets;         /* region by region */
	struct string_pool *names; /* NULL in an index of numbers */
};

/* Makes regions and buckets for the rows, which are complete. Returns false if out of memory. */
bool index_lay_out(struct index *index);

#endif
