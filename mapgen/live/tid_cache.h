/* SPDX-License-Identifier: MIT */
/* The process of a thread, remembered for a second: a text names the same threads again and again,
 * and ids are reused. */
#ifndef MAPGEN_LIVE_TID_CACHE_H
#define MAPGEN_LIVE_TID_CACHE_H

#include <stdint.h>

struct tid_cache_entry;

/* Zero-initialized except for `root`. */
struct tid_cache {
	const char *root; /* of a recorded process tree; NULL: this machine's */
	struct tid_cache_entry *items;
};

/* 0: there is no such thread. */
int32_t tid_cache_process(struct tid_cache *threads, int32_t tid);
void tid_cache_deinit(struct tid_cache *threads);

#endif
