/* SPDX-License-Identifier: MIT */
/*
 * Objects that no server has, for a while. Only definite answers are entered, never a failure that
 * may pass. Bounded: old entries make room for new ones. Safe for several threads.
 *
 * Each entry has the state in which its look-up began: a number of the caller that changes when
 * there may be something new. In another state the entry does not count.
 */
#ifndef SYMSRV_STORE_NEGATIVE_CACHE_H
#define SYMSRV_STORE_NEGATIVE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct negative_cache;

struct negative_cache *negative_cache_create(void); /* NULL: out of memory */
void negative_cache_destroy(struct negative_cache *negative);

/*
 * `name`: of the file, as upstreams that go by names in exact case were asked for it; NULL: only
 * other upstreams were asked. An object that is missing under a name is missing without one too.
 */
void negative_cache_add(struct negative_cache *negative, const char *text, const char *name,
			int64_t until_ms, unsigned int state);
bool negative_cache_contains(struct negative_cache *negative, const char *text, const char *name,
			     int64_t now_ms, unsigned int state);
void negative_cache_remove(struct negative_cache *negative, const char *text, const char *name);
void negative_cache_clear(struct negative_cache *negative);
/* How often it was cleared. */
unsigned int negative_cache_clears(const struct negative_cache *negative);
size_t negative_cache_count(struct negative_cache *negative);

#endif
