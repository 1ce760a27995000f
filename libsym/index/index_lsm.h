/* SPDX-License-Identifier: MIT */
/*
 * An index of numbers that grows while other threads read it: a log-structured merge tree. New
 * symbols form a small index above the large one; small indexes are joined when they become many.
 *
 *   level 2   new symbols, 100          searched first
 *   level 1   older symbols, 3,000
 *   level 0   the first index, 1,000,000
 *
 * Readers see a version: a list of indexes that never changes. The writer publishes a new version,
 * and frees the old one when the caller knows that no reader is left.
 */
#ifndef LIBSYM_INDEX_INDEX_LSM_H
#define LIBSYM_INDEX_INDEX_LSM_H

#include <stdatomic.h>
#include <stdbool.h>

#include "libsym/index/index.h"

enum {
	INDEX_LSM_FAN_BITS = 3,
	INDEX_LSM_FAN = 1 << INDEX_LSM_FAN_BITS,
	/* Fewer than INDEX_LSM_FAN levels in each class up to that of LIMIT_INDEX_SYMBOLS, and the
	 * added one. */
	INDEX_LSM_MOST = (28 / INDEX_LSM_FAN_BITS + 1) * (INDEX_LSM_FAN - 1) + 1
};

/* If two levels contain a position, the later level wins. A piece without a size wins only if no
 * level has a piece with a size. */
struct index_version {
	size_t count;
	struct index *levels[INDEX_LSM_MOST];
	/* Set once there is a newer version: levels that it does not use. They are freed with this
	 * version. */
	size_t retired_level_count;
	struct index *retired_levels[INDEX_LSM_MOST];
	struct index_version *next_retired;
};

struct index_lsm {
	_Atomic(struct index_version *) view; /* NULL: no level yet */
	struct index_version *retired;
};

void index_lsm_deinit(struct index_lsm *levels);

/* Adds an index above the existing ones and adopts it, on success only. One thread at a time. */
struct sym_error *index_lsm_add(struct index_lsm *levels, struct index *added)
	__attribute__((warn_unused_result));

/* Replaces all levels by one index and adopts it, on success only. `levels` is zeroed at first. */
struct sym_error *index_lsm_replace(struct index_lsm *levels, struct index *index)
	__attribute__((warn_unused_result));

/* Is there an old version that a reader from before the last index_lsm_add() or index_lsm_replace()
 * may still use? */
static inline bool index_lsm_has_garbage(const struct index_lsm *levels)
{
	return levels->retired != NULL;
}

/* Frees old versions. Call only when no such reader is left. */
void index_lsm_collect(struct index_lsm *levels);

static inline const struct index_version *index_lsm_current(const struct index_lsm *levels)
{
	return atomic_load(&((struct index_lsm *)levels)->view);
}

/* The lowest and largest index. */
static inline const struct index *index_lsm_lowest(const struct index_lsm *levels)
{
	return index_lsm_current(levels)->levels[0];
}

/* Returns false and writes nothing if no level contains the position. */
bool index_version_look_up(const struct index_version *view, uint64_t position,
			   struct index_entry *ret);

#endif
