/* SPDX-License-Identifier: MIT */
/*
 * What nobody has, for a while. Only definite answers are entered, never a
 * failure that may pass. Bounded: beyond its size old entries make room.
 * May be used by several threads.
 *
 * Each entry is of the state in which one began to look, a number of the caller's that
 * changes when there may be something new: in another state it says nothing.
 */
#ifndef SYMSRV_NEGATIVE_H
#define SYMSRV_NEGATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct negative;

struct negative *negative_create(void); /* NULL: no memory */
void negative_destroy(struct negative *negative);

/*
 * `name`: of the file, as it was spelt to upstreams that go by names and tell
 * upper case from lower; NULL: only the others were asked. What is missing under a
 * name is missing without one too.
 */
void negative_add(struct negative *negative, const char *text, const char *name, int64_t until_ms,
		  unsigned int state);
bool negative_contains(struct negative *negative, const char *text, size_t text_bytes,
		       const char *name, int64_t now_ms, unsigned int state);
void negative_remove(struct negative *negative, const char *text, const char *name);
void negative_clear(struct negative *negative);
/* How often it was cleared. */
unsigned int negative_clears(const struct negative *negative);
size_t negative_count(struct negative *negative);

#endif
