/* SPDX-License-Identifier: MIT */
#include "libsym/index_layout.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/huge_memory.h"

bool index_writer_begin(struct index_writer *writer)
{
	struct index *index = writer->index;

	writer->leaf_capacity = writer->capacity / INDEX_LEAF + 1;
	index->leaves = huge_memory_allocate(writer->leaf_capacity * sizeof(*index->leaves));
	index->details = huge_memory_allocate(writer->capacity * sizeof(*index->details));
	return index->leaves && index->details;
}

/* Leaves for one more region than was thought: its first leaf may be the successor of one that is
 * not full. */
static bool grow_leaves(struct index_writer *writer)
{
	size_t capacity = writer->leaf_capacity + writer->leaf_capacity / 2 + 8;
	struct index_leaf *leaves = huge_memory_allocate(capacity * sizeof(*leaves));

	if (!leaves)
		return false;
	memcpy(leaves, writer->index->leaves, writer->leaf_count * sizeof(*leaves));
	free(writer->index->leaves);
	writer->index->leaves = leaves;
	writer->leaf_capacity = capacity;
	return true;
}

static bool begin_leaf(struct index_writer *writer)
{
	struct index *index = writer->index;
	unsigned int i;

	if (writer->leaf_count == writer->leaf_capacity && !grow_leaves(writer))
		return false;
	writer->leaf = &index->leaves[writer->leaf_count++];
	writer->slot = 0;
	index->regions[index->region_count - 1].leaf_count++;
	for (i = 0; i < INDEX_LEAF; i++) {
		writer->leaf->keys[i] = index_key(INDEX_NO_KEY);
		writer->leaf->sizes[i] = 0;
	}
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
	writer->base = base;
	index->regions[index->region_count++] = (struct index_region){
		.base = base,
		.first_piece = index->count,
		.first_leaf = writer->leaf_count,
	};
	return begin_leaf(writer);
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
		.piece = index->count,
		.size_bytes = piece->size_bytes,
		.symbol_start = piece->symbol_start,
		.symbol_size_bytes = piece->symbol_size_bytes,
	};
	return true;
}

/* Makes `leaf` and `slot` the place of a piece that starts at `start`. */
static bool find_place(struct index_writer *writer, uint64_t start)
{
	if (!writer->leaf || start - writer->base >= INDEX_NO_KEY)
		return begin_region(writer, start);
	return writer->slot < INDEX_LEAF || begin_leaf(writer);
}

static bool grow_details(struct index_writer *writer)
{
	size_t capacity = writer->capacity + writer->capacity / 2 + 8;
	struct index_detail *details =
		reallocarray(writer->index->details, capacity, sizeof(*details));

	if (!details)
		return false;
	writer->index->details = details;
	writer->capacity = capacity;
	return true;
}

bool index_writer_add(struct index_writer *writer, const struct index_piece *piece)
{
	struct index *index = writer->index;
	uint32_t size = (uint32_t)piece->size_bytes;

	if (!find_place(writer, piece->start) ||
	    (index->count == writer->capacity && !grow_details(writer)))
		return false;
	if (piece->start != piece->symbol_start || piece->size_bytes != piece->symbol_size_bytes ||
	    piece->size_bytes >= INDEX_ODD) {
		if (!add_odd(writer, piece))
			return false;
		size = INDEX_ODD;
	}
	writer->leaf->keys[writer->slot] = index_key((uint32_t)(piece->start - writer->base));
	writer->leaf->sizes[writer->slot++] = size;
	index->details[index->count++] = piece->detail;
	return true;
}

/* ---- the way to a leaf ----------------------------------------------------------- */

static int32_t first_key(const struct index *index, const struct index_region *region, size_t leaf)
{
	return index->leaves[region->first_leaf + leaf].keys[0];
}

/* Distance of the last leaf from the base. */
static uint32_t reach(const struct index *index, const struct index_region *region)
{
	return (uint32_t)first_key(index, region, region->leaf_count - 1) ^ 0x80000000u;
}

/* About half as many buckets as leaves, and the end of the last one. */
static void choose_buckets(const struct index *index, struct index_region *region)
{
	uint32_t last = reach(index, region);

	while ((last >> region->bucket_shift) > region->leaf_count / 2)
		region->bucket_shift++;
	region->bucket_count = (last >> region->bucket_shift) + 2;
}

static void fill_region(const struct index *index, const struct index_region *region)
{
	int32_t *keys = index->first_keys + region->first_key;
	uint32_t *buckets = index->buckets + region->first_bucket;
	size_t bucket, leaf = 0, i;

	for (i = 0; i < region->leaf_count; i++)
		keys[i] = first_key(index, region, i);
	for (; i < region->leaf_count + INDEX_LEAF; i++)
		keys[i] = index_key(INDEX_NO_KEY);
	for (bucket = 0; bucket < region->bucket_count; bucket++) {
		uint64_t begin = (uint64_t)bucket << region->bucket_shift;

		while (leaf + 1 < region->leaf_count &&
		       ((uint32_t)keys[leaf + 1] ^ 0x80000000u) <= begin)
			leaf++;
		buckets[bucket] = (uint32_t)leaf;
	}
}

bool index_writer_end(struct index_writer *writer)
{
	struct index *index = writer->index;
	size_t keys = 0, buckets = 0, i;

	for (i = 0; i < index->region_count; i++) {
		struct index_region *region = &index->regions[i];

		choose_buckets(index, region);
		region->first_key = keys;
		region->first_bucket = buckets;
		keys += region->leaf_count + INDEX_LEAF;
		buckets += region->bucket_count;
	}
	index->first_keys = huge_memory_allocate(keys * sizeof(*index->first_keys));
	index->buckets = huge_memory_allocate(buckets * sizeof(*index->buckets));
	if (!index->first_keys || !index->buckets)
		return false;
	for (i = 0; i < index->region_count; i++)
		fill_region(index, &index->regions[i]);
	return true;
}
