/* SPDX-License-Identifier: MIT */
#include "libsym/index_layout.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/huge_memory.h"
#include "libsym/index_keys.h"

enum {
	GAP_REGIONS = 32,  /* so many regions may begin behind a gap */
	CROWDED_PART = 64, /* one leaf of so many may begin in a cell of another */
	/* Finer buckets are at most four times as many as their leaves. */
	FINER_PART_BITS = 1,
	MOST_FINER = 20
};

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

	if (index->leaf_count == writer->leaf_capacity &&
	    !enlarge_leaves(writer, writer->leaf_capacity + writer->leaf_capacity / 2 + 8))
		return false;
	index_writer_open_leaf(writer, start);
	return true;
}

static void end_region(struct index_writer *writer)
{
	struct index *index = writer->index;
	struct index_region *region = &index->regions[index->region_count - 1];
	uint32_t last;

	region->piece_count = (uint32_t)index->count - region->first_piece;
	last = (uint32_t)writer->leaf->keys[writer->slot - 1];
	/* A large one that ends it does not make its buckets wide. */
	region->span_bytes = last + (writer->last_size_bytes < UINT16_MAX ? writer->last_size_bytes
									  : UINT16_MAX);
	if (region->span_bytes > INDEX_NO_KEY)
		region->span_bytes = INDEX_NO_KEY;
	region->reach_bytes = last + writer->last_size_bytes;
}

static bool begin_region(struct index_writer *writer, uint64_t base)
{
	struct index *index = writer->index;

	if (index->region_count)
		end_region(writer);
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
		.first_leaf = (uint32_t)index->leaf_count,
		.first_piece = (uint32_t)index->count,
	};
	writer->base = base;
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
		.value = piece->detail.value,
		.size_bytes = piece->size_bytes,
		.symbol_start = piece->symbol_start,
		.symbol_size_bytes = piece->symbol_size_bytes,
	};
	return true;
}

static inline bool find_place(struct index_writer *writer, uint64_t start)
{
	const struct index *index = writer->index;
	uint64_t distance = start - writer->base;

	/* Another heap: buckets of equal width do for what is dense alike. */
	if (!writer->leaf || distance >= INDEX_NO_KEY ||
	    (start - writer->leaf_start >= INDEX_NEAR_BYTES && index->region_count < GAP_REGIONS))
		return begin_region(writer, start);
	if (writer->slot < INDEX_LEAF)
		return true;
	if (distance >= INDEX_NO_KEY - INDEX_NEAR_BYTES)
		return begin_region(writer, start);
	return begin_leaf(writer, start);
}

static inline unsigned int code_of(struct index *index, uint32_t value)
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

bool index_writer_place(struct index_writer *writer, uint64_t start)
{
	return find_place(writer, start);
}

unsigned int index_code_of(struct index *index, uint32_t value)
{
	return code_of(index, value);
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
		writer->codes[piece->detail.value % INDEX_CODES] = (uint8_t)code;
	if (piece->start != piece->symbol_start || piece->size_bytes != piece->symbol_size_bytes ||
	    !piece->size_bytes || piece->size_bytes > UINT16_MAX || code == INDEX_VALUES) {
		if (!add_odd(writer, piece))
			return false;
		size = INDEX_ODD;
	}
	index_leaf_put(writer->leaf, writer->slot++, piece->start - writer->base, size,
		       (uint8_t)(code < INDEX_VALUES ? code : 0), piece->detail.number);
	writer->last_size_bytes = piece->size_bytes;
	index->count++;
	return true;
}

bool index_writer_add_whole_apart(struct index_writer *writer, uint64_t start, uint64_t size_bytes,
				  struct index_detail detail)
{
	return index_writer_add(writer, &(struct index_piece){
						.start = start,
						.size_bytes = size_bytes,
						.symbol_start = start,
						.symbol_size_bytes = size_bytes,
						.detail = detail,
					});
}

/* ---- the way to a leaf ----------------------------------------------------------- */

static uint64_t place_of(const struct index_region *region, size_t leaf)
{
	return index_place(region, (uint64_t)region->leaves[leaf].keys[0]);
}

/* How many leaves begin in a cell in which another does. */
static size_t count_crowded(const struct index_region *region)
{
	size_t leaf_count = index_leaf_count(region), crowded = 0;
	uint64_t last = place_of(region, 0) >> INDEX_CELL_SHIFT;

	for (size_t i = 1; i < leaf_count; i++) {
		uint64_t cell = place_of(region, i) >> INDEX_CELL_SHIFT;

		crowded += cell == last;
		last = cell;
	}
	return crowded;
}

/* False: in none of them several leaves begin in one cell. */
static bool choose_buckets(struct index_region *region)
{
	size_t leaf_count = index_leaf_count(region), leaves = INDEX_BUCKET_LEAVES, crowded;

	do {
		size_t count = leaf_count / leaves;

		region->bucket_count = (uint32_t)(count ? count : 1);
		/* Rounded down: the last position still lies in the last one. */
		region->bucket_rate = ((uint64_t)region->bucket_count << 32) / region->span_bytes;
		leaves /= 2;
		crowded = count_crowded(region);
	} while (leaves && crowded > leaf_count / CROWDED_PART);
	return crowded;
}

/* The leaves from `leaf` up to `end` that begin in a bucket, a bit for each cell; returns the
 * number of the first one that does not. `finer`: the buckets are 2 to the power of it for one of
 * the region. */
static size_t fill_bucket(const struct index_region *region, uint64_t number, unsigned int finer,
			  struct index_bucket *bucket, size_t leaf, size_t end)
{
	*bucket = (struct index_bucket){ .before = (uint32_t)leaf - 1 };
	for (; leaf < end; leaf++) {
		uint64_t place = place_of(region, leaf), bit;

		if (place >> (32 - finer) != number)
			break;
		bit = (uint64_t)1 << index_cell(place << finer);
		if (bucket->begins & bit)
			bucket->crowd = INDEX_CROWD;
		bucket->begins |= bit;
	}
	return leaf;
}

/* Into how many, as a power of two, a bucket is cut so that no two of its leaves begin in one cell,
 * or hardly any do. */
static unsigned int choose_finer(const struct index_region *region, size_t leaf, size_t end)
{
	unsigned int most = FINER_PART_BITS, finer = 1;

	while (most < MOST_FINER && (end - leaf) >> (most - FINER_PART_BITS))
		most++;
	for (; finer < most; finer++) {
		size_t shared = 0;

		for (size_t i = leaf + 1; i < end; i++)
			shared += place_of(region, i - 1) >> (INDEX_CELL_SHIFT - finer) ==
				  place_of(region, i) >> (INDEX_CELL_SHIFT - finer);
		if (!shared)
			break;
	}
	return finer;
}

struct filling {
	const struct index_region *region;
	struct index_bucket *buckets; /* of the region */
	struct index_bucket *next;    /* of the finer ones; NULL: they are only counted */
	size_t finer_count;           /* of all regions */
};

/* Leaves up to `end` begin in a bucket in which several begin in one cell. */
static void cut_bucket(struct filling *filling, size_t number, size_t leaf, size_t end)
{
	unsigned int finer = choose_finer(filling->region, leaf, end);
	size_t count = (size_t)1 << finer, offset;

	/* And one more, for the end. */
	filling->finer_count += count + 1;
	if (!filling->next)
		return;
	offset = (size_t)(filling->next - filling->buckets);
	if (offset < (size_t)1 << (32 - INDEX_FINER_BITS))
		filling->buckets[number].crowd = (uint32_t)(offset << INDEX_FINER_BITS) | finer;
	for (size_t i = 0; i <= count; i++)
		leaf = fill_bucket(filling->region, ((uint64_t)number << finer) + i, finer,
				   filling->next++, leaf, end);
}

static void fill_buckets(struct filling *filling)
{
	const struct index_region *region = filling->region;
	size_t leaf_count = index_leaf_count(region), leaf = 0;

	for (size_t i = 0; i <= region->bucket_count; i++) {
		struct index_bucket bucket;
		size_t end = fill_bucket(region, i, 0, &bucket, leaf, leaf_count);

		if (filling->next)
			filling->buckets[i] = bucket;
		if (bucket.crowd)
			cut_bucket(filling, i, leaf, end);
		leaf = end;
	}
}

static bool make_buckets(struct index *index)
{
	struct filling counted = { 0 }, filling = { 0 };
	size_t count = 0, i;

	for (i = 0; i < index->region_count; i++) {
		struct index_region *region = &index->regions[i];

		region->leaves = index->leaves + region->first_leaf;
		counted.region = region;
		if (choose_buckets(region))
			fill_buckets(&counted);
		count += region->bucket_count + 1;
	}
	index->buckets =
		huge_memory_allocate((count + counted.finer_count) * sizeof(*index->buckets));
	if (!index->buckets)
		return false;
	filling.next = index->buckets + count;
	for (i = count = 0; i < index->region_count; i++) {
		struct index_region *region = &index->regions[i];

		region->buckets = filling.buckets = index->buckets + count;
		filling.region = region;
		fill_buckets(&filling);
		count += region->bucket_count + 1;
	}
	return true;
}

/* An index of nothing has an empty region too. */
static bool end_regions(struct index *index)
{
	size_t count = index->region_count ? index->region_count : 1;
	struct index_region *regions = realloc(index->regions, count * sizeof(*regions));

	if (!regions)
		return false;
	if (!index->region_count)
		regions[0] = (struct index_region){ 0 };
	index->regions = regions;
	return true;
}

static bool make_slots(struct index *index)
{
	size_t count = index_can_count_bits() ? index->region_count : 0;
	struct address_span *spans AUTO_FREE = calloc(count + 1, sizeof(*spans));
	struct address_slots slots;

	if (!spans)
		return false;
	for (size_t i = 0; i < count; i++)
		spans[i] = (struct address_span){
			.start = index->regions[i].base,
			.size_bytes = index->regions[i].span_bytes,
			.weight = index->regions[i].piece_count,
		};
	address_slots_choose(spans, count, INDEX_SLOTS, &slots);
	index->slots = huge_memory_allocate((slots.mask + 1) * sizeof(*index->slots));
	if (!index->slots)
		return false;
	for (uint32_t i = 0; i <= slots.mask; i++)
		index->slots[i] = slots.spans[i] == ADDRESS_SLOT_NONE
					  ? (struct index_region){ 0 }
					  : index->regions[slots.spans[i]];
	index->slot_shift = slots.shift;
	index->slot_mask = slots.mask;
	return true;
}

bool index_writer_end(struct index_writer *writer)
{
	struct index *index = writer->index;

	if (index->region_count)
		end_region(writer);
	return make_buckets(index) && end_regions(index) && make_slots(index);
}
