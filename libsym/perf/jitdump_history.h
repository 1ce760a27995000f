/* SPDX-License-Identifier: MIT */
/*
 * Which code was at an address at a time, for a JIT that uses memory again.
 * It knows no files and no names. A stay is one piece of code at one place; it has a number.
 */
#ifndef LIBSYM_PERF_JITDUMP_HISTORY_H
#define LIBSYM_PERF_JITDUMP_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From `timestamp` on the code is there, until later code covers it. */
struct jitdump_stay {
	uint64_t timestamp;
	uint64_t start, size_bytes;
	uint32_t number; /* the caller's */
};

struct jitdump_history;

/*
 * Takes ownership of a heap array of stays, ascending by time. If times are equal, the later stay
 * wins. NULL when out of memory, or when the stays overlap too much (LIMIT_HISTORY_ENTRIES). The
 * array is freed in any case.
 */
struct jitdump_history *jitdump_history_create(struct jitdump_stay *stays, size_t count);
void jitdump_history_destroy(struct jitdump_history *history);

/*
 * Finds the last stay that had begun at `timestamp`.
 * If all stays at the address are later, the first of them: code is there before it is recorded.
 * NULL when there are none, or when the time is before all stays, and so from another clock.
 */
const struct jitdump_stay *jitdump_history_find(const struct jitdump_history *history,
						uint64_t address, uint64_t timestamp);

/* Finds the last of the first `count` stays at an address. NULL when there is none. */
const struct jitdump_stay *jitdump_history_before(const struct jitdump_history *history,
						  uint64_t address, size_t count);

#endif
