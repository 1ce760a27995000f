/* SPDX-License-Identifier: MIT */
/*
 * The memory of a frozen index; for index.c, which searches it, and
 * index_layout.c, which fills it.
 *
 * Pieces lie in leaves of two cache lines, up to 12 in each. The first line is
 * what is searched: their starts, as distances of 16 bits from the first of them,
 * and their sizes; the second is what is answered: where their names are. A leaf
 * ends early where the next piece lies too far away. A region spans about 4 GiB, so
 * a process has few of them, and within one 32 bits say where a leaf begins. A
 * region is cut into buckets of equal width, of 5 to 10 leaves each. A bucket says
 * which leaf it begins in and where in it others begin, in 15 bits: where it is
 * wide that is a little too low, and the search goes back a leaf. To find a
 * leaf, the beginnings are counted that are not above the position. Where more leaves
 * begin in a bucket than it can list, they are searched in halves.
 *
 *   leaves       10.7 bytes a piece
 *   buckets      0.4: what is searched first and stays in the caches, so that a
 *                look-up waits for memory once, for both lines of its leaf
 *   odd          pieces that are not a whole symbol of less than 64 KiB, or whose
 *                value is not one of the first 255 different ones
 *
 * With the NUL behind a name that makes 12.1 bytes a symbol beside its name.
 */
#ifndef LIBSYM_INDEX_LAYOUT_H
#define LIBSYM_INDEX_LAYOUT_H

#include "libsym/index.h"
#include "libsym/index_names.h"

enum {
	INDEX_LEAF = 12,          /* pieces of a leaf */
	INDEX_BUCKET = 14,        /* leaves that a bucket lists */
	INDEX_BUCKET_LEAVES = 5,  /* and has at least, on average */
	INDEX_BUCKET_BITS = 15,   /* of a place in a bucket */
	INDEX_VALUES = UINT8_MAX, /* different values that have a code */
};

#define INDEX_ODD UINT16_MAX

/* Distance from the start of a leaf that no piece reaches, place in a bucket that there is not:
 * marks keys that are not used. */
#define INDEX_NO_KEY UINT16_MAX

/* Distance from the start of a region that no leaf reaches. */
#define INDEX_NO_LEAF UINT32_MAX

/* Keys are biased, so that signed comparison, all that SSE2 has, orders them. */
static inline int16_t index_key(uint16_t distance)
{
	return (int16_t)(distance ^ 0x8000u);
}

static inline uint16_t index_key_distance(int16_t key)
{
	return (uint16_t)((uint16_t)key ^ 0x8000u);
}

struct index_leaf {
	int16_t keys[INDEX_LEAF];
	uint16_t sizes[INDEX_LEAF]; /* INDEX_ODD sends the reader to `odd` */
	uint32_t distance;          /* of its first piece from the base of the region */
	uint32_t first_piece;
	uint32_t reserved[2];
	/* The second line. */
	uint32_t numbers[INDEX_LEAF]; /* where the names are, or what stands for them */
	uint8_t codes[INDEX_LEAF];    /* of the values */
	uint32_t reserved_too;
};

_Static_assert(sizeof(struct index_leaf) == 128, "two cache lines");

/* More leaves begin in it than it lists. */
#define INDEX_CROWD 0x80000000u

struct index_bucket {
	uint32_t leaf;              /* of the region, in which the bucket begins; INDEX_CROWD */
	int16_t keys[INDEX_BUCKET]; /* where in it others begin */
};

_Static_assert(sizeof(struct index_bucket) == 32, "half a cache line");

struct index_region {
	uint64_t base; /* start of its first piece */
	size_t first_leaf, leaf_count;
	/* Bucket b begins b << bucket_shift behind the base; there is one more, for the end of the
	 * last one. */
	size_t first_bucket, bucket_count;
	unsigned int bucket_shift;
	unsigned int key_shift; /* what a key of a bucket counts */
};

struct index_detail {
	uint32_t number;
	uint32_t value;
};

/* A piece whose symbol is larger than what remained of it, or whose size or value does not fit. */
struct index_odd {
	uint32_t piece;
	uint32_t value;
	uint64_t size_bytes;
	uint64_t symbol_start;
	uint64_t symbol_size_bytes;
};

struct index {
	size_t count;
	struct index_region *regions; /* ascending */
	size_t region_count;
	struct index_leaf *leaves;
	size_t leaf_count;
	struct index_bucket *buckets; /* region by region */
	uint32_t values[INDEX_VALUES];
	unsigned int value_count;
	struct index_names *names;
	bool owns_names;
	bool is_numbered;      /* without names */
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
	size_t leaf_capacity, region_capacity, odd_capacity;
	struct index_leaf *leaf; /* NULL before the first piece */
	unsigned int slot;       /* of the next piece in it */
	uint64_t leaf_start;     /* of its first piece */
	unsigned int code;       /* of the last value, if there is one */
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
	struct index_leaf *leaf = writer->leaf;
	unsigned int slot = writer->slot;

	if (!leaf || slot == INDEX_LEAF || start - writer->leaf_start >= INDEX_NO_KEY ||
	    size_bytes >= INDEX_ODD || detail.value != index->values[writer->code])
		return index_writer_add(writer, &(struct index_piece){
							.start = start,
							.size_bytes = size_bytes,
							.symbol_start = start,
							.symbol_size_bytes = size_bytes,
							.detail = detail,
						});
	leaf->keys[slot] = index_key((uint16_t)(start - writer->leaf_start));
	leaf->sizes[slot] = (uint16_t)size_bytes;
	leaf->codes[slot] = (uint8_t)writer->code;
	leaf->numbers[slot] = detail.number;
	writer->slot = slot + 1;
	index->count++;
	return true;
}

/* Makes the buckets. index_destroy() frees what was made. */
bool index_writer_end(struct index_writer *writer);

#endif
