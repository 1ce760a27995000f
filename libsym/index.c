/* SPDX-License-Identifier: MIT */
/*
 * Looking up in a frozen index. The steps of one look-up wait for each other,
 * mostly for memory, so a batch takes each step for many positions in turn:
 * while one waits for its cache line, the others go on.
 */
#include "libsym/index_layout.h"

#include <stdlib.h>
#include <string.h>

/* Look-ups that go side by side: about as many misses as a core keeps in flight. */
enum {
	BATCH_LANES = 32
};

void index_destroy(struct index *index)
{
	if (!index)
		return;
	free(index->regions);
	free(index->leaves);
	free(index->first_keys);
	free(index->buckets);
	free(index->details);
	if (index->owns_names)
		index_names_destroy(index->names);
	free(index->odd);
	free(index);
}

size_t index_count(const struct index *index)
{
	return index->count;
}

static int compare_odd(const void *key, const void *element)
{
	size_t piece = *(const size_t *)key;
	const struct index_odd *odd = element;

	return piece < odd->piece ? -1 : piece > odd->piece;
}

static const struct index_odd *find_odd(const struct index *index, size_t piece)
{
	return bsearch(&piece, index->odd, index->odd_count, sizeof(*index->odd), compare_odd);
}

/* The region with the highest first piece at or below `piece`. */
static const struct index_region *region_of_piece(const struct index *index, size_t piece)
{
	const struct index_region *region = index->regions;
	size_t count = index->region_count;

	while (count > 1) {
		size_t half = count / 2;

		if (region[half].first_piece <= piece)
			region += half;
		count -= half;
	}
	return region;
}

void index_at(const struct index *index, size_t i, struct index_entry *ret)
{
	const struct index_region *region = region_of_piece(index, i);
	size_t inside = i - region->first_piece;
	const struct index_leaf *leaf = &index->leaves[region->first_leaf + inside / INDEX_LEAF];
	uint32_t size = leaf->sizes[inside % INDEX_LEAF];
	const struct index_odd *odd = size & INDEX_ODD ? find_odd(index, i) : NULL;
	uint64_t start = region->base + ((uint32_t)leaf->keys[inside % INDEX_LEAF] ^ 0x80000000u);

	*ret = (struct index_entry){
		.start = start,
		.size_bytes = odd ? odd->size_bytes : size,
		.symbol_start = odd ? odd->symbol_start : start,
		.symbol_size_bytes = odd ? odd->symbol_size_bytes : size,
		.name = index_names_at(index->names, index->details[i].name_offset),
		.value = index->details[i].value,
	};
}

/* ---- one step ---------------------------------------------------------------- */

typedef int32_t four __attribute__((vector_size(16)));

/* How many of 16 ascending keys are at or below `key`. */
static inline size_t count_at_or_below(const int32_t *keys, int32_t key)
{
	four all = { key, key, key, key }, of_four[INDEX_LEAF / 4], above;

	/* They need not be aligned. */
	memcpy(of_four, keys, sizeof(of_four));
	/* A comparison that holds is -1. */
	above = (of_four[0] > all) + (of_four[1] > all) + (of_four[2] > all) + (of_four[3] > all);
	above += __builtin_shufflevector(above, above, 2, 3, 0, 1);
	above += __builtin_shufflevector(above, above, 1, 0, 3, 2);
	return (size_t)(INDEX_LEAF + above[0]);
}

/* The region with the highest base at or below the position; the first one when all are above. */
static inline const struct index_region *region_of_position(const struct index *index,
							    uint64_t position)
{
	const struct index_region *region = index->regions;
	size_t count = index->region_count;

	while (count > 1) {
		size_t half = count / 2;

		region = region[half].base <= position ? region + half : region;
		count -= half;
	}
	return region;
}

/* A position far behind the last start of its region is told apart by its size, not by its key. */
static inline int32_t key_in(const struct index_region *region, uint64_t position)
{
	uint64_t distance = position - region->base;

	return index_key(distance < INDEX_NO_KEY ? (uint32_t)distance : INDEX_NO_KEY - 1);
}

static inline const uint32_t *bucket_of(const struct index *index,
					const struct index_region *region, int32_t key)
{
	uint32_t distance = (uint32_t)key ^ 0x80000000u;
	uint32_t last = (uint32_t)region->bucket_count - 2;
	uint32_t bucket = distance >> region->bucket_shift;

	return &index->buckets[region->first_bucket + (bucket < last ? bucket : last)];
}

/* Leaves crowd in this bucket: the last one of them whose first key is at or below `key`. */
static __attribute__((noinline)) size_t search_crowd(const int32_t *first_keys, size_t low,
						     size_t high, int32_t key)
{
	while (low < high) {
		size_t middle = low + (high - low + 1) / 2;

		if (first_keys[middle] <= key)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

/* The number, in its region, of the leaf in which the position is if it is anywhere. */
static inline size_t find_leaf(const struct index *index, const struct index_region *region,
			       const uint32_t *bucket, int32_t key)
{
	const int32_t *first_keys = index->first_keys + region->first_key;
	/* At least one: a bucket begins at or behind the first key of its leaf. */
	size_t count = count_at_or_below(first_keys + bucket[0], key);

	if (__builtin_expect(count == INDEX_LEAF, 0))
		return search_crowd(first_keys, bucket[0] + INDEX_LEAF - 1, bucket[1], key);
	return bucket[0] + count - 1;
}

static inline size_t find_in_leaf(const struct index *index, const struct index_region *region,
				  size_t leaf_number, int32_t key, uint64_t position)
{
	const struct index_leaf *leaf = &index->leaves[region->first_leaf + leaf_number];
	size_t slot, piece;
	uint64_t start, size_bytes;

	/* On their way while the keys, which say which of them are meant, come. */
	__builtin_prefetch(leaf->sizes);
	piece = region->first_piece + leaf_number * INDEX_LEAF;
	__builtin_prefetch(&index->details[piece]);
	__builtin_prefetch(&index->details[piece + INDEX_LEAF / 2]);
	/* The leaf begins at or below the position, so at least one key does. */
	slot = count_at_or_below(leaf->keys, key) - 1;
	start = region->base + ((uint32_t)leaf->keys[slot] ^ 0x80000000u);
	piece += slot;
	size_bytes = leaf->sizes[slot];
	if (__builtin_expect(size_bytes & INDEX_ODD, 0))
		size_bytes = find_odd(index, piece)->size_bytes;
	return position - start < size_bytes ? piece : INDEX_NONE;
}

size_t index_find(const struct index *index, uint64_t position)
{
	const struct index_region *region;
	int32_t key;

	if (!index->count || position < index->regions[0].base)
		return INDEX_NONE;
	region = region_of_position(index, position);
	key = key_in(region, position);
	return find_in_leaf(index, region,
			    find_leaf(index, region, bucket_of(index, region, key), key), key,
			    position);
}

/* ---- many ---------------------------------------------------------------------- */

struct lane {
	const struct index_region *region;
	const uint32_t *bucket;
	size_t leaf;
	int32_t key;
};

static void find_lanes(const struct index *index, const uint64_t *positions, size_t count,
		       size_t *ret)
{
	struct lane lanes[BATCH_LANES];
	size_t i;

	for (i = 0; i < count; i++) {
		const struct index_region *region = region_of_position(index, positions[i]);
		int32_t key = key_in(region, positions[i]);

		lanes[i] = (struct lane){ .region = region,
					  .key = key,
					  .bucket = bucket_of(index, region, key) };
		__builtin_prefetch(lanes[i].bucket);
	}
	for (i = 0; i < count; i++) {
		const int32_t *keys =
			index->first_keys + lanes[i].region->first_key + lanes[i].bucket[0];

		__builtin_prefetch(keys);
		__builtin_prefetch(keys + INDEX_LEAF - 1);
	}
	for (i = 0; i < count; i++) {
		const struct index_leaf *leaf;

		lanes[i].leaf = find_leaf(index, lanes[i].region, lanes[i].bucket, lanes[i].key);
		leaf = &index->leaves[lanes[i].region->first_leaf + lanes[i].leaf];
		__builtin_prefetch(leaf->keys);
		__builtin_prefetch(leaf->sizes);
	}
	for (i = 0; i < count; i++)
		ret[i] = positions[i] < index->regions[0].base
				 ? INDEX_NONE
				 : find_in_leaf(index, lanes[i].region, lanes[i].leaf, lanes[i].key,
						positions[i]);
}

void index_find_batch(const struct index *index, const uint64_t *positions, size_t count,
		      size_t *ret)
{
	size_t i;

	for (i = 0; i < count && !index->count; i++)
		ret[i] = INDEX_NONE;
	for (; i < count; i += BATCH_LANES)
		find_lanes(index, positions + i, count - i < BATCH_LANES ? count - i : BATCH_LANES,
			   ret + i);
}

void index_warm(const struct index *index, const uint64_t *positions, size_t count)
{
	size_t pieces[BATCH_LANES], lanes, i;

	for (; count && index->count; count -= lanes, positions += lanes) {
		lanes = count < BATCH_LANES ? count : BATCH_LANES;
		find_lanes(index, positions, lanes, pieces);
		for (i = 0; i < lanes; i++)
			if (pieces[i] != INDEX_NONE)
				__builtin_prefetch(&index->details[pieces[i]]);
	}
}
