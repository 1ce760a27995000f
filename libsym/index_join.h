/* SPDX-License-Identifier: MIT */
/*
 * One index of several of numbers, without sorting anything again: each is
 * ascending and disjoint, so they are walked side by side.
 */
#ifndef LIBSYM_INDEX_JOIN_H
#define LIBSYM_INDEX_JOIN_H

#include "libsym/index.h"

enum {
	INDEX_JOIN_MOST = 128
};

/*
 * What index_freeze() would make of the symbols of the first, then those of the second added, and
 * so on: 1 to INDEX_JOIN_MOST of them, of numbers all. They stay as they are.
 */
struct sym_error *index_join(const struct index *const *indexes, size_t count, struct index **ret)
	__attribute__((warn_unused_result));

#endif
