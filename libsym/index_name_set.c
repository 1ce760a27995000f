/* SPDX-License-Identifier: MIT */
#include "libsym/index_name_set.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libsym/limits.h"

enum {
	FEWEST_PLACES = 1 << 10
};

/* Of an open table; a name is looked at only where its hash is the same. */
struct place {
	uint32_t hash;
	uint32_t is_taken;
	uint32_t offset;
	uint32_t name_bytes;
};

struct index_name_set {
	atomic_uint users;
	struct index_names *names;
	struct place *places;
	size_t place_count; /* a power of two */
	size_t count;       /* at most half of them are taken */
	size_t bytes;
};

struct sym_error *index_name_set_create(struct index_name_set **ret)
{
	struct index_name_set *set = calloc(1, sizeof(*set));

	if (!set)
		return &sym_error_no_memory;
	atomic_init(&set->users, 1);
	set->names = index_names_create();
	set->places = calloc(FEWEST_PLACES, sizeof(*set->places));
	set->place_count = FEWEST_PLACES;
	if (!set->names || !set->places) {
		index_name_set_release(set);
		return &sym_error_no_memory;
	}
	*ret = set;
	return NULL;
}

struct index_name_set *index_name_set_share(struct index_name_set *set)
{
	atomic_fetch_add(&set->users, 1);
	return set;
}

void index_name_set_release(struct index_name_set *set)
{
	if (!set || atomic_fetch_sub(&set->users, 1) != 1)
		return;
	index_names_destroy(set->names);
	free(set->places);
	free(set);
}

/* The next free place of a hash. */
static struct place *free_place(struct place *places, size_t place_count, uint32_t hash)
{
	size_t at = hash & (place_count - 1);

	while (places[at].is_taken)
		at = (at + 1) & (place_count - 1);
	return &places[at];
}

static bool grow(struct index_name_set *set)
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

static const struct place *find(const struct index_name_set *set, uint32_t hash, const char *name,
				size_t name_bytes)
{
	for (size_t at = hash & (set->place_count - 1); set->places[at].is_taken;
	     at = (at + 1) & (set->place_count - 1)) {
		const struct place *place = &set->places[at];

		if (place->hash == hash && place->name_bytes == name_bytes &&
		    !memcmp(index_names_at(set->names, place->offset), name, name_bytes))
			return place;
	}
	return NULL;
}

struct sym_error *index_name_set_add(struct index_name_set *set, const char *name,
				     size_t name_bytes, uint32_t *offset_ret)
{
	uint32_t hash = (uint32_t)XXH3_64bits(name, name_bytes);
	const struct place *known = find(set, hash, name, name_bytes);
	uint32_t offset;

	if (known) {
		*offset_ret = known->offset;
		return NULL;
	}
	if (!grow(set))
		return &sym_error_no_memory;
	switch (index_names_add(set->names, name, name_bytes, &offset)) {
	case INDEX_NAMES_ADDED:
		break;
	case INDEX_NAMES_FULL:
		return sym_error_create(SYM_ERROR_LIMIT, "names of an index: more than %zu bytes",
					LIMIT_INDEX_NAME_BYTES);
	default:
		return &sym_error_no_memory;
	}
	*free_place(set->places, set->place_count, hash) =
		(struct place){ hash, 1, offset, (uint32_t)name_bytes };
	set->count++;
	set->bytes += name_bytes + 1;
	*offset_ret = offset;
	return NULL;
}

struct index_names *index_name_set_names(const struct index_name_set *set)
{
	return set->names;
}

size_t index_name_set_bytes(const struct index_name_set *set)
{
	return set->bytes;
}
