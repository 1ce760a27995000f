/* SPDX-License-Identifier: MIT */
#include "libsym/index_layout.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"

/* Moves `count` elements to a larger array; *array stays as it is without memory. */
static bool enlarge(void **array, size_t size_bytes, size_t count, size_t capacity)
{
	void *larger = huge_memory_allocate(capacity * size_bytes);

	if (!larger)
		return false;
	if (count)
		memcpy(larger, *array, count * size_bytes);
	free(*array);
	*array = larger;
	return true;
}

static bool enlarge_leaves(struct index_writer *writer, size_t capacity)
{
	struct index *index = writer->index;

	if (!enlarge((void **)&index->leaves, sizeof(*index->leaves), index->leaf_count, capacity))
		return false;
	writer->leaf_capacity = capacity;
	return true;
}

static bool enlarge_keys(struct index_writer *writer, size_t capacity)
{
	if (!enlarge((void **)&writer->index->first_keys, sizeof(*writer->index->first_keys),
		     writer->key_count, capacity))
		return false;
	writer->key_capacity = capacity;
	return true;
}

/* Room for some leaves that are not full; what is not used costs no memory. */
bool index_writer_begin(struct index_writer *writer)
{
	size_t leaves = writer->capacity / INDEX_LEAF + writer->capacity / (8 * INDEX_LEAF) + 1;

	return enlarge_leaves(writer, leaves) && enlarge_keys(writer, leaves + 2 * INDEX_LEAF);
}

static bool add_key(struct index_writer *writer, uint32_t distance)
{
	if (writer->key_count == writer->key_capacity &&
	    !enlarge_keys(writer, writer->key_capacity + writer->key_capacity / 2))
		return false;
	writer->index->first_keys[writer->key_count++] = index_key(distance);
	return true;
}

/* Behind the keys of a region, so that from any one of them on as many can be read as are looked at
 * together. */
static bool end_region(struct index_writer *writer)
{
	for (unsigned int i = 0; i < INDEX_FIRST_KEYS; i++)
		if (!add_key(writer, INDEX_NO_KEY))
			return false;
	return true;
}

static bool begin_leaf(struct index_writer *writer, uint64_t start)
{
	struct index *index = writer->index;
	struct index_region *region = &index->regions[index->region_count - 1];
	unsigned int i;

	if (!add_key(writer, (uint32_t)(start - region->base)))
		return false;
	if (index->leaf_count == writer->leaf_capacity &&
	    !enlarge_leaves(writer, writer->leaf_capacity + writer->leaf_capacity / 2 + 8))
		return false;
	writer->leaf = &index->leaves[index->leaf_count++];
	writer->slot = 0;
	writer->leaf_start = start;
	region->leaf_count++;
	*writer->leaf = (struct index_leaf){ .first_piece = (uint32_t)index->count };
	for (i = 0; i < INDEX_LEAF; i++)
		writer->leaf->keys[i] = index_leaf_key(INDEX_NO_LEAF_KEY);
	return true;
}

static bool begin_region(struct index_writer *writer, uint64_t base)
{
	struct index *index = writer->index;

	if (index->region_count && !end_region(writer))
		return false;
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
		.first_key = writer->key_count,
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

	if (!writer->leaf || start - index->regions[index->region_count - 1].base >= INDEX_NO_KEY)
		return begin_region(writer, start);
	if (writer->slot < INDEX_LEAF && start - writer->leaf_start < INDEX_NO_LEAF_KEY)
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
	writer->leaf->keys[writer->slot] =
		index_leaf_key((uint16_t)(piece->start - writer->leaf_start));
	writer->leaf->sizes[writer->slot] = size;
	writer->leaf->codes[writer->slot] = (uint8_t)writer->code;
	writer->leaf->numbers[writer->slot++] = piece->detail.number;
	index->count++;
	return true;
}

/* ---- the way to a leaf ----------------------------------------------------------- */

/* About half as many buckets as leaves, and the end of the last one. */
static void choose_buckets(const struct index *index, struct index_region *region)
{
	const int32_t *keys = index->first_keys + region->first_key;
	uint32_t last = index_key_distance(keys[region->leaf_count - 1]);

	while ((last >> region->bucket_shift) > region->leaf_count / 2)
		region->bucket_shift++;
	region->bucket_count = (last >> region->bucket_shift) + 2;
}

static void fill_buckets(const struct index *index, const struct index_region *region)
{
	const int32_t *keys = index->first_keys + region->first_key;
	uint32_t *buckets = index->buckets + region->first_bucket;
	size_t bucket, leaf = 0;

	for (bucket = 0; bucket < region->bucket_count; bucket++) {
		uint64_t begin = (uint64_t)bucket << region->bucket_shift;

		while (leaf + 1 < region->leaf_count && index_key_distance(keys[leaf + 1]) <= begin)
			leaf++;
		buckets[bucket] = (uint32_t)leaf;
	}
}

bool index_writer_end(struct index_writer *writer)
{
	struct index *index = writer->index;
	size_t buckets = 0, i;

	if (index->region_count && !end_region(writer))
		return false;
	for (i = 0; i < index->region_count; i++) {
		choose_buckets(index, &index->regions[i]);
		index->regions[i].first_bucket = buckets;
		buckets += index->regions[i].bucket_count;
	}
	index->buckets = huge_memory_allocate(buckets * sizeof(*index->buckets));
	if (!index->buckets)
		return false;
	for (i = 0; i < index->region_count; i++)
		fill_buckets(index, &index->regions[i]);
	return true;
}
