/* SPDX-License-Identifier: MIT */
/*
 * The memory of a frozen index; for index.c, which searches it, and
 * index_layout.c, which fills it.
 *
 * Pieces lie in leaves of two cache lines, up to 12 in each. The first line is
 * what is searched: their starts, as distances of 16 bits from the first of them,
 * and their sizes; the second is what is answered: where their names are. A leaf
 * ends early where the next piece lies too far away. A region spans about 4 GiB, so
 * a process has few of them; where its leaves begin is said in 32 bits, in an array
 * of its own. A region is cut into about half as many buckets of equal width as it
 * has leaves. To find a leaf: the bucket of the position says with which leaf to
 * begin, and of the first keys of 16 leaves from there on those are counted that are
 * not above the position. Where a bucket holds more leaves than that, a binary
 * search goes on.
 *
 *   leaves       10.7 bytes a piece
 *   first keys   0.33, buckets 0.17: what is searched first and stays in the caches, so
 *                that a look-up waits for memory once, for both lines of its leaf
 *   odd          pieces that are not a whole symbol of less than 64 KiB, or whose
 *                value is not one of the first 255 different ones
 *
 * With the NUL behind a name that makes 12.2 bytes a symbol beside its name.
 */
#ifndef LIBSYM_INDEX_LAYOUT_H
#define LIBSYM_INDEX_LAYOUT_H

#include "libsym/index.h"
#include "libsym/index_names.h"

enum {
	INDEX_LEAF = 12,         /* pieces of a leaf */
	INDEX_FIRST_KEYS = 16,   /* first keys that are looked at together */
	INDEX_VALUES = UINT8_MAX /* different values that have a code */
};

#define INDEX_ODD UINT16_MAX

/* Distance from the start of a leaf, and of a region, that no piece and no leaf reaches: marks keys
 * that are not used. */
#define INDEX_NO_LEAF_KEY UINT16_MAX
#define INDEX_NO_KEY      UINT32_MAX

/* Keys are biased, so that signed comparison, all that SSE2 has, orders them. */
static inline int32_t index_key(uint32_t distance)
{
	return (int32_t)(distance ^ 0x80000000u);
}

static inline uint32_t index_key_distance(int32_t key)
{
	return (uint32_t)key ^ 0x80000000u;
}

static inline int16_t index_leaf_key(uint16_t distance)
{
	return (int16_t)(distance ^ 0x8000u);
}

static inline uint16_t index_leaf_key_distance(int16_t key)
{
	return (uint16_t)((uint16_t)key ^ 0x8000u);
}

struct index_leaf {
	int16_t keys[INDEX_LEAF];
	uint16_t sizes[INDEX_LEAF]; /* INDEX_ODD sends the reader to `odd` */
	uint8_t codes[INDEX_LEAF];  /* of the values */
	uint32_t first_piece;
	/* The second line. */
	uint32_t numbers[INDEX_LEAF]; /* where the names are, or what stands for them */
	uint32_t unused[4];
};

_Static_assert(sizeof(struct index_leaf) == 128, "two cache lines");

struct index_region {
	uint64_t base; /* start of its first piece */
	size_t first_leaf, leaf_count;
	/* One key a leaf and INDEX_FIRST_KEYS that are not used, so that 16 from any one on can be
	 * read.
	 */
	size_t first_key;
	/* Bucket b begins b << bucket_shift behind the base and has the last leaf at or below that.
	 */
	size_t first_bucket;
	size_t bucket_count; /* and one more, for the end of the last one */
	unsigned int bucket_shift;
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
	int32_t *first_keys; /* of the leaves, region by region */
	uint32_t *buckets;   /* numbers of leaves inside the region */
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
	size_t leaf_capacity, key_count, key_capacity, region_capacity, odd_capacity;
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

	if (!leaf || slot == INDEX_LEAF || start - writer->leaf_start >= INDEX_NO_LEAF_KEY ||
	    size_bytes >= INDEX_ODD || detail.value != index->values[writer->code])
		return index_writer_add(writer, &(struct index_piece){
							.start = start,
							.size_bytes = size_bytes,
							.symbol_start = start,
							.symbol_size_bytes = size_bytes,
							.detail = detail,
						});
	leaf->keys[slot] = index_leaf_key((uint16_t)(start - writer->leaf_start));
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
