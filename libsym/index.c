/* SPDX-License-Identifier: MIT */
/*
 * Looking up in a frozen index. A look-up walks the tree of every 16th start
 * without branches, then counts in one block of 16. A batch walks as many
 * look-ups side by side as there are cache misses worth hiding.
 */
#include "libsym/index_layout.h"

#include <stdlib.h>
#include <string.h>

/* Look-ups that walk side by side: about as many misses as a core keeps in flight. */
enum {
	BATCH_LANES = 16
};

bool index_allocate(struct index *index, size_t count)
{
	/* One element more: an empty index allocates too. */
	index->starts = malloc((count + 1) * sizeof(*index->starts));
	index->sizes = malloc((count + 1) * sizeof(*index->sizes));
	index->name_offsets = malloc((count + 1) * sizeof(*index->name_offsets));
	index->values = malloc((count + 1) * sizeof(*index->values));
	index->count = count;
	return index->starts && index->sizes && index->name_offsets && index->values;
}

void index_destroy(struct index *index)
{
	if (!index)
		return;
	free(index->starts);
	free(index->sizes);
	free(index->name_offsets);
	free(index->values);
	free(index->names);
	free(index->odd);
	free(index->tree);
	free(index->tree_blocks);
	free(index);
}

/* Fills the subtree at `slot` in order; returns the next block. Its depth is that of the tree, at
 * most 28. */
static size_t fill_tree(struct index *index, size_t slot, size_t block)
{
	if (slot > index->block_count)
		return block;
	block = fill_tree(index, 2 * slot, block);
	index->tree[slot] = index->starts[block * INDEX_BLOCK];
	index->tree_blocks[slot] = (uint32_t)block;
	return fill_tree(index, 2 * slot + 1, block + 1);
}

struct sym_error *index_build_tree(struct index *index)
{
	size_t slots;

	index->block_count = (index->count + INDEX_BLOCK - 1) / INDEX_BLOCK;
	while (((size_t)1 << index->tree_levels) <= index->block_count)
		index->tree_levels++;
	slots = index->block_count + 1;
	index->tree = aligned_alloc(64, (slots * sizeof(*index->tree) + 63) / 64 * 64);
	index->tree_blocks = malloc(slots * sizeof(*index->tree_blocks));
	if (!index->tree || !index->tree_blocks)
		return &sym_error_no_memory;
	/* Slot 0 is where a search ends that found no key above the position. */
	index->tree[0] = 0;
	index->tree_blocks[0] = (uint32_t)index->block_count;
	fill_tree(index, 1, 0);
	return NULL;
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

void index_at(const struct index *index, size_t i, struct index_entry *ret)
{
	const char *name = index->names + index->name_offsets[i];
	const struct index_odd *odd = index->sizes[i] & INDEX_ODD ? find_odd(index, i) : NULL;

	*ret = (struct index_entry){
		.start = index->starts[i],
		.size_bytes = odd ? odd->size_bytes : index->sizes[i],
		.symbol_start = odd ? odd->symbol_start : index->starts[i],
		.symbol_size_bytes = odd ? odd->symbol_size_bytes : index->sizes[i],
		.name = name,
		.name_bytes = (uint32_t)strlen(name),
		.value = index->values[i],
	};
}

/* One step down: to the right where the key is not above the position. */
static inline size_t step(const struct index *index, size_t slot, uint64_t position)
{
	return 2 * slot + (index->tree[slot] <= position);
}

/*
 * The slot of the first key above the position: the path that led below the
 * leaves holds a 1 bit for every turn to the right; the last turn to the left is it.
 */
static inline size_t slot_above(size_t path)
{
	return path >> (__builtin_ctzll(~(unsigned long long)path) + 1);
}

/* The piece that covers the position, in the block before the one that begins above it. */
static inline size_t find_in_block(const struct index *index, size_t block_above, uint64_t position)
{
	size_t first, last, i, below = 0;

	if (!block_above)
		return INDEX_NONE;
	first = (block_above - 1) * INDEX_BLOCK;
	last = index->count - first < INDEX_BLOCK ? index->count - first : INDEX_BLOCK;
	for (i = 0; i < last; i++)
		below += index->starts[first + i] <= position;
	/* The block begins at or below the position, so below is at least 1. */
	i = first + below - 1;
	if (__builtin_expect(index->sizes[i] & INDEX_ODD, 0)) {
		const struct index_odd *odd = find_odd(index, i);

		return position - index->starts[i] < odd->size_bytes ? i : INDEX_NONE;
	}
	return position - index->starts[i] < index->sizes[i] ? i : INDEX_NONE;
}

size_t index_find(const struct index *index, uint64_t position)
{
	size_t slot = 1;

	while (slot <= index->block_count) {
		/* The eight keys three levels down lie in one cache line. */
		__builtin_prefetch(index->tree + 8 * slot);
		slot = step(index, slot, position);
	}
	return find_in_block(index, index->tree_blocks[slot_above(slot)], position);
}

static void find_lanes(const struct index *index, const uint64_t *positions, size_t lanes,
		       size_t *ret)
{
	size_t slots[BATCH_LANES];
	unsigned int level;
	size_t lane;

	for (lane = 0; lane < lanes; lane++)
		slots[lane] = 1;
	for (level = 0; level < index->tree_levels; level++) {
		for (lane = 0; lane < lanes; lane++) {
			if (slots[lane] > index->block_count)
				continue;
			slots[lane] = step(index, slots[lane], positions[lane]);
			__builtin_prefetch(index->tree + slots[lane]);
		}
	}
	for (lane = 0; lane < lanes; lane++) {
		slots[lane] = index->tree_blocks[slot_above(slots[lane])];
		if (slots[lane]) {
			__builtin_prefetch(index->starts + (slots[lane] - 1) * INDEX_BLOCK);
			__builtin_prefetch(index->starts + (slots[lane] - 1) * INDEX_BLOCK + 8);
			__builtin_prefetch(index->sizes + (slots[lane] - 1) * INDEX_BLOCK);
		}
	}
	for (lane = 0; lane < lanes; lane++)
		ret[lane] = find_in_block(index, slots[lane], positions[lane]);
}

void index_find_batch(const struct index *index, const uint64_t *positions, size_t count,
		      size_t *ret)
{
	size_t i;

	for (i = 0; i < count; i += BATCH_LANES)
		find_lanes(index, positions + i, count - i < BATCH_LANES ? count - i : BATCH_LANES,
			   ret + i);
}
