/* SPDX-License-Identifier: MIT */
/*
 * Answers about one image, as JSON, by position. Many hosts run the same code, and ask for the same
 * positions again and again.
 */
#ifndef SYMSRV_RESOLVE_KNOWN_ANSWERS_H
#define SYMSRV_RESOLVE_KNOWN_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_table.h"
#include "libsym/base/buf.h"
#include "libsym/libsym.h"

/* As many positions as a question may have. */
#define KNOWN_ANSWERS_MOST 100000

struct known_text {
	size_t start, size_bytes; /* in `texts` */
};

/* All zero: empty. */
struct known_answers {
	struct buf texts;
	struct known_text *list; /* room for KNOWN_ANSWERS_MOST */
	size_t count;
	struct address_table places; /* by position: items of `list` */
	uint64_t seed;               /* clients cannot choose positions that collide in `places` */
};

/* Frees the memory, and leaves no answers. */
void known_answers_forget(struct known_answers *known);

/* Replaces no older answer. False: there is no room, or no memory. */
bool known_answers_add(struct known_answers *known, uint64_t position,
		       const struct sym_answer *answer);

/* The text, or NULL. Valid until the next answer is added. */
const char *known_answers_find(const struct known_answers *known, uint64_t position,
			       size_t *size_bytes_ret);

#endif
