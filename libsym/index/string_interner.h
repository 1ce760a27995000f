/* SPDX-License-Identifier: MIT */
/* Interned names of indexes that follow one another and mostly contain the same names. Each name is
 * stored once and never moves. So names handed out from one index stay valid with the next. */
#ifndef LIBSYM_INDEX_STRING_INTERNER_H
#define LIBSYM_INDEX_STRING_INTERNER_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "libsym/index/string_pool.h"

struct string_interner;

/* Starts with one user. */
struct sym_error *string_interner_create(struct string_interner **ret)
	__attribute__((warn_unused_result));
/* Adds a user. Thread safe. */
struct string_interner *string_interner_share(struct string_interner *set);
/* Removes a user; the last one frees it. Thread safe. Accepts NULL. */
void string_interner_release(struct string_interner *set);

/* Finds the name in string_interner_names(), or adds it, for index_builder_add_number(). Only one
 * thread may call it, while others read. Errors: LIMIT, NO_MEMORY. */
struct sym_error *string_interner_add(struct string_interner *set, const char *name,
				      size_t name_bytes, uint32_t *offset_ret)
	__attribute__((warn_unused_result));

struct string_pool *string_interner_names(const struct string_interner *set);

/* Total length of all names with their NULs. */
size_t string_interner_bytes(const struct string_interner *set);

DEFINE_GUARD(string_interner, struct string_interner *, string_interner_release)
#define AUTO_STRING_INTERNER GUARDED(string_interner)

#endif
