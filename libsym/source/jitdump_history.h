/* SPDX-License-Identifier: MIT */
/*
 * What lay where at which time: of code that a jit puts into memory that it
 * uses again. Knows nothing of files and names; a stay is known by its number.
 */
#ifndef LIBSYM_SOURCE_JITDUMP_HISTORY_H
#define LIBSYM_SOURCE_JITDUMP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From `timestamp` on something lies there, until what comes later lies there too. */
struct jitdump_stay {
	uint64_t timestamp;
	uint64_t start, size_bytes;
	uint32_t number; /* the caller's */
};

struct jitdump_history;

/*
 * Takes a heap array of stays over, in ascending order of time; of equal times the later one
 * holds. Without memory, or when they are interwoven beyond any use (LIMIT_HISTORY_ENTRIES): NULL,
 * and the stays are gone.
 */
struct jitdump_history *jitdump_history_create(struct jitdump_stay *stays, size_t count);
void jitdump_history_destroy(struct jitdump_history *history);

/*
 * What lay there at `timestamp`: the last that had come by then. Of a place where only later ones
 * are known the first of these: it was there before it was written down. NULL: nothing ever did,
 * or the time is before the first of all, and so one of another clock.
 */
const struct jitdump_stay *jitdump_history_find(const struct jitdump_history *history,
						uint64_t address, uint64_t timestamp);

#endif
