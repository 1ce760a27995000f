/* SPDX-License-Identifier: MIT */
#include "libsym/index/string_interner.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libsym/limits.h"

enum {
	FEWEST_PLACES = 1 << 10
};

/*
 * A slot of a hash table with open addressing. Names are compared only if their hashes are equal.
 */
struct place {
	uint32_t hash;
	uint32_t is_taken;
	uint32_t offset;
	uint32_t name_bytes;
};

struct string_interner {
	atomic_uint users;
	struct string_pool *names;
	struct place *places;
	size_t place_count; /* a power of two */
	size_t count;       /* at most half of place_count */
	size_t bytes;
};

struct sym_error *string_interner_create(struct string_interner **ret)
{
	struct string_interner *set = calloc(1, sizeof(*set));

	if (!set)
		return &sym_error_no_memory;
	atomic_init(&set->users, 1);
	set->names = string_pool_create();
	set->places = calloc(FEWEST_PLACES, sizeof(*set->places));
	set->place_count = FEWEST_PLACES;
	if (!set->names || !set->places) {
		string_interner_release(set);
		return &sym_error_no_memory;
	}
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
	string_pool_destroy(set->names);
	free(set->places);
	free(set);
}

/* The next free slot for a hash. */
static struct place *free_place(struct place *places, size_t place_count, uint32_t hash)
{
	size_t at = hash & (place_count - 1);

	while (places[at].is_taken)
		at = (at + 1) & (place_count - 1);
	return &places[at];
}

static bool string_interner_grow(struct string_interner *set)
{
	size_t place_count = 2 * set->place_count;
	struct place *places;

	if (2 * set->count < set->place_count)
		return true;
	places = calloc(place_count, sizeof(*places));
	if (!places)
		return false;
	for (size_t i = 0; i < set->place_count; i++)
		if (set->places[i].is_taken)
			*free_place(places, place_count, set->places[i].hash) = set->places[i];
	free(set->places);
	set->places = places;
	set->place_count = place_count;
	return true;
}

static const struct place *string_interner_find(const struct string_interner *set, uint32_t hash,
						const char *name, size_t name_bytes)
{
	for (size_t at = hash & (set->place_count - 1); set->places[at].is_taken;
	     at = (at + 1) & (set->place_count - 1)) {
		const struct place *place = &set->places[at];

		if (place->hash == hash && place->name_bytes == name_bytes &&
		    !memcmp(string_pool_at(set->names, place->offset), name, name_bytes))
			return place;
	}
	return NULL;
}

struct sym_error *string_interner_add(struct string_interner *set, const char *name,
				      size_t name_bytes, uint32_t *offset_ret)
{
	/* The hash only selects a slot; names are compared. */
	uint32_t hash = (uint32_t)XXH3_64bits(name, name_bytes);
	const struct place *known = string_interner_find(set, hash, name, name_bytes);
	struct sym_error *error;
	uint32_t offset;

	if (known) {
		*offset_ret = known->offset;
		return NULL;
	}
	if (!string_interner_grow(set))
		return &sym_error_no_memory;
	error = string_pool_add(set->names, name, name_bytes, &offset);
	if (error)
		return error;
	*free_place(set->places, set->place_count, hash) =
		(struct place){ hash, 1, offset, (uint32_t)name_bytes };
	set->count++;
	set->bytes += name_bytes + 1;
	*offset_ret = offset;
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
