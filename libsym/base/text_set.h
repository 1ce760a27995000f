/* SPDX-License-Identifier: MIT */
/* A set of texts. Each is copied once and never moves, until the set ends. Start with all zero. */
#ifndef LIBSYM_BASE_TEXT_SET_H
#define LIBSYM_BASE_TEXT_SET_H

#include <stdbool.h>
#include <stddef.h>

struct text_set {
	struct text_entry *entries;
};

/* The copy in the set, which is added if it is missing; NULL: out of memory. `text` may have bytes
 * behind `size_bytes`; the copy ends with a NUL. */
const char *text_set_add(struct text_set *set, const char *text, size_t size_bytes);

bool text_set_has(const struct text_set *set, const char *text);

/* Leaves an empty set. */
void text_set_deinit(struct text_set *set);

#endif
