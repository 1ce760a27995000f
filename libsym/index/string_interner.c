/* SPDX-License-Identifier: MIT */
#include "libsym/index/string_interner.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "libsym/base/hash.h"

/* Its key is the name in the pool. */
struct interned {
	UT_hash_handle hh;
	uint32_t offset;
};

struct string_interner {
	atomic_uint users;
	struct string_pool *names;
	struct interned *entries;
	size_t bytes;
};

struct sym_error *string_interner_create(struct string_interner **ret)
{
	struct string_interner *set = calloc(1, sizeof(*set));

	if (set)
		set->names = string_pool_create();
	if (!set || !set->names) {
		free(set);
		return &sym_error_no_memory;
	}
	atomic_init(&set->users, 1);
	*ret = set;
	return NULL;
}

struct string_interner *string_interner_share(struct string_interner *set)
{
	atomic_fetch_add(&set->users, 1);
	return set;
}

void string_interner_release(struct string_interner *set)
{
	if (!set || atomic_fetch_sub(&set->users, 1) != 1)
		return;
	HASH_DESTROY(set->entries, free);
	string_pool_destroy(set->names);
	free(set);
}

struct sym_error *string_interner_add(struct string_interner *set, const char *name,
				      size_t name_bytes, uint32_t *offset_ret)
{
	struct interned *entry;
	struct sym_error *error;

	HASH_FIND(hh, set->entries, name, name_bytes, entry);
	if (entry) {
		*offset_ret = entry->offset;
		return NULL;
	}
	entry = malloc(sizeof(*entry));
	error = entry ? string_pool_add(set->names, name, name_bytes, &entry->offset)
		      : &sym_error_no_memory;
	if (!error) {
		HASH_ADD_KEYPTR(hh, set->entries, string_pool_at(set->names, entry->offset),
				name_bytes, entry);
		error = hash_added(entry) ? NULL : &sym_error_no_memory;
	}
	if (error) {
		free(entry);
		return error;
	}
	set->bytes += name_bytes + 1;
	*offset_ret = entry->offset;
	return NULL;
}

struct string_pool *string_interner_names(const struct string_interner *set)
{
	return set->names;
}

size_t string_interner_bytes(const struct string_interner *set)
{
	return set->bytes;
}
