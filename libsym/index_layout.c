/* SPDX-License-Identifier: MIT */
#include "libsym/index_layout.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"

enum {
	GAP_REGIONS = 32 /* so many regions may begin behind a gap */
};

static const uint64_t gap_bytes = 1 << 20;

static bool enlarge_leaves(struct index_writer *writer, size_t capacity)
{
	struct index *index = writer->index;
	struct index_leaf *leaves = huge_memory_allocate(capacity * sizeof(*leaves));

	if (!leaves)
		return false;
	if (index->leaf_count)
		memcpy(leaves, index->leaves, index->leaf_count * sizeof(*leaves));
	free(index->leaves);
	index->leaves = leaves;
	writer->leaf_capacity = capacity;
	return true;
}

/* Room for some leaves that are not full; what is not used costs no memory. */
bool index_writer_begin(struct index_writer *writer)
{
	return enlarge_leaves(writer, writer->capacity / INDEX_LEAF +
					      writer->capacity / (8 * INDEX_LEAF) + 1);
}

static bool begin_leaf(struct index_writer *writer, uint64_t start)
{
	struct index *index = writer->index;
	struct index_region *region = &index->regions[index->region_count - 1];
	unsigned int i;

	if (index->leaf_count == writer->leaf_capacity &&
	    !enlarge_leaves(writer, writer->leaf_capacity + writer->leaf_capacity / 2 + 8))
		return false;
	writer->leaf = &index->leaves[index->leaf_count++];
	writer->slot = 0;
	writer->leaf_start = start;
	region->leaf_count++;
	*writer->leaf = (struct index_leaf){ .first_piece = (uint32_t)index->count,
					     .distance = (uint32_t)(start - region->base) };
	for (i = 0; i < INDEX_LEAF; i++)
		writer->leaf->keys[i] = index_key(INDEX_NO_KEY);
	return true;
}

static bool begin_region(struct index_writer *writer, uint64_t base)
{
	struct index *index = writer->index;

	if (index->region_count == writer->region_capacity) {
		size_t capacity = writer->region_capacity ? 2 * writer->region_capacity : 4;
		struct index_region *regions = realloc(index->regions, capacity * sizeof(*regions));

		if (!regions)
			return false;
		index->regions = regions;
		writer->region_capacity = capacity;
	}
	index->regions[index->region_count++] = (struct index_region){
		.base = base,
		.first_leaf = index->leaf_count,
	};
	return begin_leaf(writer, base);
}

static bool add_odd(struct index_writer *writer, const struct index_piece *piece)
{
	struct index *index = writer->index;

	if (index->odd_count == writer->odd_capacity) {
		size_t capacity = writer->odd_capacity ? 2 * writer->odd_capacity : 16;
		struct index_odd *odd = realloc(index->odd, capacity * sizeof(*odd));

		if (!odd)
			return false;
		index->odd = odd;
		writer->odd_capacity = capacity;
	}
	index->odd[index->odd_count++] = (struct index_odd){
		.piece = (uint32_t)index->count,
		.value = piece->detail.value,
		.size_bytes = piece->size_bytes,
		.symbol_start = piece->symbol_start,
		.symbol_size_bytes = piece->symbol_size_bytes,
	};
	return true;
}

/* Makes `leaf` and `slot` the place of a piece that starts at `start`. */
static bool find_place(struct index_writer *writer, uint64_t start)
{
	const struct index *index = writer->index;

	if (!writer->leaf || start - index->regions[index->region_count - 1].base >= INDEX_NO_LEAF)
		return begin_region(writer, start);
	/* Another heap: buckets of equal width do for what is dense alike. */
	if (start - writer->leaf_start >= gap_bytes && index->region_count < GAP_REGIONS)
		return begin_region(writer, start);
	if (writer->slot < INDEX_LEAF && start - writer->leaf_start < INDEX_NO_KEY)
		return true;
	return begin_leaf(writer, start);
}

/* The code of a value, which is given one if there are any left; else INDEX_VALUES. */
static unsigned int code_of(struct index *index, uint32_t value)
{
	for (unsigned int i = 0; i < index->value_count; i++)
		if (index->values[i] == value)
			return i;
	if (index->value_count < INDEX_VALUES)
		index->values[index->value_count++] = value;
	else
		return INDEX_VALUES;
	return index->value_count - 1;
}

bool index_writer_add(struct index_writer *writer, const struct index_piece *piece)
{
	struct index *index = writer->index;
	uint16_t size = (uint16_t)piece->size_bytes;
	unsigned int code;

	if (!find_place(writer, piece->start))
		return false;
	code = code_of(index, piece->detail.value);
	if (code < INDEX_VALUES)
		writer->code = code;
	if (piece->start != piece->symbol_start || piece->size_bytes != piece->symbol_size_bytes ||
	    piece->size_bytes >= INDEX_ODD || code == INDEX_VALUES) {
		if (!add_odd(writer, piece))
			return false;
		size = INDEX_ODD;
	}
	writer->leaf->keys[writer->slot] = index_key((uint16_t)(piece->start - writer->leaf_start));
	writer->leaf->sizes[writer->slot] = size;
	writer->leaf->codes[writer->slot] = (uint8_t)writer->code;
	writer->leaf->numbers[writer->slot++] = piece->detail.number;
	index->count++;
	return true;
}

/* ---- the way to a leaf ----------------------------------------------------------- */

/* And one bucket more, for the end of the last one. */
static void choose_buckets(const struct index *index, struct index_region *region)
{
	uint32_t last = index->leaves[region->first_leaf + region->leaf_count - 1].distance;

	while ((last >> region->bucket_shift) > region->leaf_count / INDEX_BUCKET_LEAVES + 1)
		region->bucket_shift++;
	region->bucket_count = (last >> region->bucket_shift) + 1;
	if (region->bucket_shift > INDEX_BUCKET_BITS)
		region->key_shift = region->bucket_shift - INDEX_BUCKET_BITS;
}

/* The leaves from `leaf` on that begin before `end`; returns the number of the first one that does
 * not. */
static size_t fill_bucket(const struct index *index, const struct index_region *region,
			  struct index_bucket *bucket, size_t leaf, uint64_t begin, uint64_t end)
{
	const struct index_leaf *leaves = index->leaves + region->first_leaf;
	unsigned int count = 0;

	/* In front of the first leaf there is nothing that could be asked for. */
	bucket->leaf = (uint32_t)(leaf ? leaf - 1 : 0);
	for (unsigned int i = 0; i < INDEX_BUCKET; i++)
		bucket->keys[i] = index_key(INDEX_NO_KEY);
	for (leaf += !leaf; leaf < region->leaf_count && leaves[leaf].distance < end; leaf++) {
		uint64_t key = (leaves[leaf].distance - begin) >> region->key_shift;

		if (count < INDEX_BUCKET)
			bucket->keys[count++] = index_key((uint16_t)key);
		else
			bucket->leaf |= INDEX_CROWD;
	}
	return leaf;
}

static void fill_buckets(const struct index *index, const struct index_region *region)
{
	struct index_bucket *buckets = index->buckets + region->first_bucket;
	size_t leaf = 0;

	for (size_t i = 0; i <= region->bucket_count; i++)
		leaf = fill_bucket(index, region, &buckets[i], leaf,
				   (uint64_t)i << region->bucket_shift,
				   (uint64_t)(i + 1) << region->bucket_shift);
}

bool index_writer_end(struct index_writer *writer)
{
	struct index *index = writer->index;
	size_t buckets = 0, i;

	for (i = 0; i < index->region_count; i++) {
		choose_buckets(index, &index->regions[i]);
		index->regions[i].first_bucket = buckets;
		buckets += index->regions[i].bucket_count + 1;
	}
	index->buckets = huge_memory_allocate(buckets * sizeof(*index->buckets));
	if (!index->buckets)
		return false;
	for (i = 0; i < index->region_count; i++)
		fill_buckets(index, &index->regions[i]);
	return true;
}
