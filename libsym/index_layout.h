/* SPDX-License-Identifier: MIT */
/*
 * The memory of a frozen index; for index.c, which searches it, and
 * index_builder.c, which fills it.
 *
 *   tree      every 16th start in Eytzinger order: a search touches one cache
 *             line a level, and the levels to come can be prefetched
 *   starts    ascending; a search ends in one block of 16 of them
 *   sizes     32 bits each; the top bit sends the reader to `odd`
 *   names, values
 *   odd       pieces that are not a whole symbol of less than 2^31 bytes
 *
 * That is 20.75 bytes a symbol beside its name.
 */
#ifndef LIBSYM_INDEX_LAYOUT_H
#define LIBSYM_INDEX_LAYOUT_H

#include "libsym/index.h"

enum {
	INDEX_BLOCK = 16
};

#define INDEX_ODD 0x80000000u

/* A piece whose symbol is larger than what remained of it, or whose size does not fit. */
struct index_odd {
	size_t piece;
	uint64_t size_bytes;
	uint64_t symbol_start;
	uint64_t symbol_size_bytes;
};

struct index {
	size_t count;
	uint64_t *starts;
	uint32_t *sizes;
	uint32_t *name_offsets;
	uint32_t *values;
	char *names;
	struct index_odd *odd; /* ascending by piece */
	size_t odd_count;
	size_t block_count;
	unsigned int tree_levels;
	uint64_t *tree;        /* 1-based, block_count keys */
	uint32_t *tree_blocks; /* which block a key of the tree begins */
};

/* Room for `count` pieces; false when there is no memory. index_destroy() frees what was made. */
bool index_allocate(struct index *index, size_t count);

/* Builds the search tree over index->starts. */
struct sym_error *index_build_tree(struct index *index);

#endif
