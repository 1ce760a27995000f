/* SPDX-License-Identifier: MIT */
/*
 * The names of indexes that follow one another and mostly say the same: each name is there
 * once and stays where it is, so those that were handed out from one index are good with the
 * next. Knows nothing of symbols.
 */
#ifndef LIBSYM_INDEX_NAME_SET_H
#define LIBSYM_INDEX_NAME_SET_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "libsym/index_names.h"

struct index_name_set;

/* With one user. */
struct sym_error *index_name_set_create(struct index_name_set **ret)
	__attribute__((warn_unused_result));
/* Another user; from any thread. */
struct index_name_set *index_name_set_share(struct index_name_set *set);
/* For one user; the last one ends it. From any thread. NULL is accepted. */
void index_name_set_release(struct index_name_set *set);

/*
 * Where the name is among index_name_set_names(), for index_builder_add_number(); adds it if it is
 * new. By one thread at a time, while others read. Errors: LIMIT, NO_MEMORY.
 */
struct sym_error *index_name_set_add(struct index_name_set *set, const char *name,
				     size_t name_bytes, uint32_t *offset_ret)
	__attribute__((warn_unused_result));

struct index_names *index_name_set_names(const struct index_name_set *set);

/* Of all names, each with its NUL. */
size_t index_name_set_bytes(const struct index_name_set *set);

DEFINE_GUARD(index_name_set, struct index_name_set *, index_name_set_release)
#define AUTO_INDEX_NAME_SET GUARDED(index_name_set)

#endif
