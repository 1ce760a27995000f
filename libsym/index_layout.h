/* SPDX-License-Identifier: MIT */
/*
 * The memory of a frozen index; for index.c, which searches it, and
 * index_layout.c, which fills it.
 *
 * Pieces lie in leaves of one cache line, 5 in each, with all that is answered of
 * them: a look-up waits for memory once. A region spans at most 2 GiB, so a process has
 * few of them, and within one 31 bits say where a piece starts. All its leaves but the
 * last are full. A region is cut into buckets of equal width, and each of them into 64
 * cells. A bucket has a bit for each cell in which a leaf begins and knows how many began
 * before, so counting bits tells the leaf. That is one too many where the leaf begins
 * behind the position in its own cell, once in 40 times where symbols have one size, in 6 in
 * real maps: then the search goes back.
 * Where more leaves than one begin in a cell (stubs of 12 bytes beside methods of some
 * hundred), the bucket is cut into finer ones. Where those are too many, its leaves are
 * searched in halves; buckets of a region in which cells are often shared are narrower.
 *
 *   leaves       12.8 bytes a piece
 *   buckets      0.4, up to 3.2: what is searched first and stays in the caches
 *   odd          pieces that are not a whole symbol of less than 64 KiB, or whose
 *                value is not one of the first 255 different ones; a leaf knows how many
 *                there are before it
 *
 * With the NUL behind a name that makes 14.2 bytes a symbol beside its name.
 *
 * Looking up one after another is fast as far as a core can begin the next ones while it
 * waits for the memory of one. How many it holds at a time is a matter of how few
 * instructions one has, and of branches that go the same way every time.
 */
#ifndef LIBSYM_INDEX_LAYOUT_H
#define LIBSYM_INDEX_LAYOUT_H

#include "libsym/address_slots.h"
#include "libsym/index.h"
#include "libsym/index_names.h"

enum {
	INDEX_LEAF = 5,          /* pieces of a leaf */
	INDEX_BUCKET_LEAVES = 8, /* of a bucket, on average, where they begin about evenly */
	INDEX_SLOTS = 256,       /* at most, for regions */
	INDEX_CODES = 64,        /* of values whose low bits differ a writer knows the code */
	INDEX_VALUES = UINT8_MAX /* different values that have a code */
};

/* A size that sends the reader to `odd`. */
#define INDEX_ODD 0

/* No piece starts so far behind the base of its region: marks keys that are not used. */
#define INDEX_NO_KEY INT32_MAX

struct index_leaf {
	uint16_t sizes[INDEX_LEAF];
	uint16_t reserved;
	int32_t keys[INDEX_LEAF];     /* starts, from the base of the region; INDEX_NO_KEY */
	uint32_t numbers[INDEX_LEAF]; /* where the names are, or what stands for them */
	uint8_t codes[INDEX_LEAF];    /* of the values */
	uint8_t reserved_too[3];
	uint32_t odd_before; /* odd pieces in the leaves before */
};

_Static_assert(sizeof(struct index_leaf) == 64, "a cache line");
_Static_assert(offsetof(struct index_leaf, keys[1]) == 16 && INDEX_LEAF == 5,
	       "all keys but the first one are a vector");

/* `key`: the start, from the base of the region. */
static inline void index_leaf_put(struct index_leaf *leaf, unsigned int slot, uint64_t key,
				  uint16_t size, uint8_t code, uint32_t number)
{
	leaf->keys[slot] = (int32_t)key;
	leaf->sizes[slot] = size;
	leaf->codes[slot] = code;
	leaf->numbers[slot] = number;
}

struct index_bucket {
	uint64_t begins; /* a bit for each cell in which a leaf begins */
	uint32_t before; /* the last leaf that begins before the bucket; -1 if there is none */
	/* 0, or several leaves begin in one cell: INDEX_CROWD, or the bucket is cut into 2 to the
	 * power of the lowest INDEX_FINER_BITS bits, the first of which is the bits above behind
	 * the first bucket of the region. */
	uint32_t crowd;
};

enum {
	INDEX_FINER_BITS = 5
};

#define INDEX_CROWD (((uint32_t)1 << INDEX_FINER_BITS) - 1)

_Static_assert(sizeof(struct index_bucket) == 16, "four of them in a cache line");

struct index_region {
	uint64_t base;        /* start of its first piece */
	uint64_t span_bytes;  /* behind it there is at most the rest of its last piece */
	uint64_t reach_bytes; /* where that ends; a position below `base` lies behind it too */
	uint64_t bucket_rate; /* buckets a byte, in parts of 2^32: all of them in span_bytes */
	const struct index_leaf *leaves;
	/* And one more, for the end of the last one; those that others are cut into lie behind the
	 * buckets of all regions. */
	const struct index_bucket *buckets;
	uint32_t first_leaf, bucket_count;
	uint32_t first_piece, piece_count;
};

_Static_assert(sizeof(struct index_region) == 64, "a cache line");

static inline size_t index_leaf_count(const struct index_region *region)
{
	return (region->piece_count + INDEX_LEAF - 1) / INDEX_LEAF;
}

struct index_detail {
	uint32_t number;
	uint32_t value;
};

/* A piece whose symbol is larger than what remained of it, or whose size or value does not fit. */
struct index_odd {
	uint64_t size_bytes;
	uint64_t symbol_start;
	uint64_t symbol_size_bytes;
	uint32_t value;
	uint32_t reserved;
};

struct index {
	/* Copies of regions, one of which an address is in if it is in any but for a few: see
	 * address_slots.h. There is nothing in them where bits cannot be counted quickly. */
	struct index_region *slots;
	uint32_t slot_mask;
	unsigned int slot_shift;
	size_t count;
	struct index_region *regions; /* ascending */
	size_t region_count;
	struct index_leaf *leaves;
	size_t leaf_count;
	struct index_bucket *buckets; /* region by region, then the finer ones */
	uint32_t values[INDEX_VALUES];
	unsigned int value_count;
	struct index_names *names; /* NULL for numbers */
	struct index_odd *odd;     /* ascending by piece */
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
	struct index_leaf *leaf;    /* NULL before the first piece */
	unsigned int slot;          /* of the next piece in it */
	uint8_t codes[INDEX_CODES]; /* of values, where the last one of their low bits has one */
	uint64_t leaf_start;        /* of its first piece */
	uint64_t base;              /* of the region */
	uint64_t last_size_bytes;
};

/* Pieces so close behind the first one of their leaf are in its region. */
#define INDEX_NEAR_BYTES (1u << 20)

static inline struct index_leaf *index_writer_open_leaf(struct index_writer *writer, uint64_t start)
{
	struct index_leaf *leaf = &writer->index->leaves[writer->index->leaf_count++];

	*leaf = (struct index_leaf){ .odd_before = (uint32_t)writer->index->odd_count };
	for (unsigned int i = 0; i < INDEX_LEAF; i++)
		leaf->keys[i] = INDEX_NO_KEY;
	writer->leaf = leaf;
	writer->slot = 0;
	writer->leaf_start = start;
	return leaf;
}

/* The leaf behind a full one, for a piece that starts at `key` of the region; NULL where it takes
 * more than that. */
static inline struct index_leaf *index_writer_next_leaf(struct index_writer *writer, uint64_t key)
{
	if (writer->index->leaf_count == writer->leaf_capacity ||
	    key >= INDEX_NO_KEY - INDEX_NEAR_BYTES)
		return NULL;
	return index_writer_open_leaf(writer, writer->base + key);
}

/* All of them: false when there is no memory. A piece starts at or behind the end of the one
 * before. */
bool index_writer_begin(struct index_writer *writer);
bool index_writer_add(struct index_writer *writer, const struct index_piece *piece);

/* Makes `leaf` and `slot` the place of a piece that starts at `start`, for those who write it
 * there by themselves. */
bool index_writer_place(struct index_writer *writer, uint64_t start);

/* The code of a value, which is given one if there are any left; else INDEX_VALUES. */
unsigned int index_code_of(struct index *index, uint32_t value);

/* For index_writer_add_whole(). */
bool index_writer_add_whole_apart(struct index_writer *writer, uint64_t start, uint64_t size_bytes,
				  struct index_detail detail);

/* The same as index_writer_add() for a whole symbol, nearly always without a call. */
static inline bool index_writer_add_whole(struct index_writer *writer, uint64_t start,
					  uint64_t size_bytes, struct index_detail detail)
{
	struct index *index = writer->index;
	struct index_leaf *leaf = writer->leaf;
	unsigned int slot = writer->slot;
	uint8_t code = writer->codes[detail.value % INDEX_CODES];

	if (!leaf || start - writer->leaf_start >= INDEX_NEAR_BYTES || size_bytes > UINT16_MAX ||
	    detail.value != index->values[code])
		return index_writer_add_whole_apart(writer, start, size_bytes, detail);
	if (slot == INDEX_LEAF) {
		if (!index_writer_place(writer, start))
			return false;
		leaf = writer->leaf;
		slot = writer->slot;
	}
	index_leaf_put(leaf, slot, start - writer->base, (uint16_t)size_bytes, code, detail.number);
	writer->slot = slot + 1;
	writer->last_size_bytes = size_bytes;
	index->count++;
	return true;
}

/* Makes the buckets. index_destroy() frees what was made. */
bool index_writer_end(struct index_writer *writer);

#endif
