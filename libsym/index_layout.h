/* SPDX-License-Identifier: MIT */
/*
 * The memory of a frozen index; for index.c, which searches it, and
 * index_layout.c, which fills it.
 *
 * Pieces lie in leaves of 16: their starts relative to a region, 32 bits each,
 * and their sizes in the cache line behind. A region spans less than 4 GiB, so
 * a process has few of them. A region is cut into about half as many buckets of
 * equal width as it has leaves. To find a leaf: the bucket of the position says
 * with which leaf to begin, and of the first keys of 16 leaves from there on
 * those are counted that are not above the position. Where a bucket holds more
 * leaves than that, a binary search goes on.
 *
 *   leaves       8 bytes a piece
 *   first keys   0.25, buckets 0.13: what is searched first stays in the caches
 *   details      8 bytes a piece: where its name is, and the caller's value
 *   odd          pieces that are not a whole symbol of less than 2^31 bytes
 *
 * With the NUL behind a name that makes 17.4 bytes a symbol beside its name.
 */
#ifndef LIBSYM_INDEX_LAYOUT_H
#define LIBSYM_INDEX_LAYOUT_H

#include "libsym/index.h"
#include "libsym/index_names.h"

enum {
	INDEX_LEAF = 16 /* pieces of a leaf; first keys that are looked at together */
};

#define INDEX_ODD 0x80000000u

/* Distance from the start of a region that no piece reaches: marks keys that are not used. */
#define INDEX_NO_KEY UINT32_MAX

/* Keys are biased, so that signed comparison, all that SSE2 has, orders them. */
static inline int32_t index_key(uint32_t distance)
{
	return (int32_t)(distance ^ 0x80000000u);
}

struct index_leaf {
	int32_t keys[INDEX_LEAF];
	uint32_t sizes[INDEX_LEAF]; /* the top bit sends the reader to `odd` */
};

struct index_region {
	uint64_t base; /* start of its first piece */
	size_t first_piece;
	size_t first_leaf, leaf_count;
	/* One key a leaf and INDEX_LEAF that are not used, so that 16 from any one on can be read.
	 */
	size_t first_key;
	/* Bucket b begins b << bucket_shift behind the base and has the last leaf at or below that.
	 */
	size_t first_bucket;
	size_t bucket_count; /* and one more, for the end of the last one */
	unsigned int bucket_shift;
};

struct index_detail {
	uint32_t name_offset;
	uint32_t value;
};

/* A piece whose symbol is larger than what remained of it, or whose size does not fit. */
struct index_odd {
	size_t piece;
	uint64_t size_bytes;
	uint64_t symbol_start;
	uint64_t symbol_size_bytes;
};

struct index {
	size_t count;
	struct index_region *regions; /* ascending */
	size_t region_count;
	struct index_leaf *leaves;
	int32_t *first_keys; /* of the leaves, region by region */
	uint32_t *buckets;   /* numbers of leaves inside the region */
	struct index_detail *details;
	struct index_names *names;
	bool owns_names;
	struct index_odd *odd; /* ascending by piece */
	size_t odd_count;
};

/* What is written down of one piece. */
struct index_piece {
	uint64_t start, size_bytes;
	uint64_t symbol_start, symbol_size_bytes;
	struct index_detail detail;
};

/* Pieces in ascending order to leaves; zero but for `index` and `capacity`, about the number of
 * pieces. */
struct index_writer {
	struct index *index;
	size_t capacity;
	size_t leaf_count, leaf_capacity, region_capacity, odd_capacity;
	struct index_leaf *leaf; /* NULL before the first piece */
	unsigned int slot;       /* of the next piece in it */
	uint64_t base;           /* of the last region */
};

/* All of them: false when there is no memory. A piece starts at or behind the end of the one
 * before. */
bool index_writer_begin(struct index_writer *writer);
bool index_writer_add(struct index_writer *writer, const struct index_piece *piece);

/* The same for a whole symbol, nearly always without a call. */
static inline bool index_writer_add_whole(struct index_writer *writer, uint64_t start,
					  uint64_t size_bytes, struct index_detail detail)
{
	struct index *index = writer->index;

	if (!writer->leaf || writer->slot == INDEX_LEAF || index->count == writer->capacity ||
	    start - writer->base >= INDEX_NO_KEY || size_bytes >= INDEX_ODD)
		return index_writer_add(writer, &(struct index_piece){
							.start = start,
							.size_bytes = size_bytes,
							.symbol_start = start,
							.symbol_size_bytes = size_bytes,
							.detail = detail,
						});
	writer->leaf->keys[writer->slot] = index_key((uint32_t)(start - writer->base));
	writer->leaf->sizes[writer->slot++] = (uint32_t)size_bytes;
	index->details[index->count++] = detail;
	return true;
}

/* Makes first keys and buckets. index_destroy() frees what was made. */
bool index_writer_end(struct index_writer *writer);

#endif
