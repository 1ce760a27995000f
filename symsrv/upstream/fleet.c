/* SPDX-License-Identifier: MIT */
#include "symsrv/upstream/fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "symsrv/util/digest.h"

/* The identity without its kind. */
static void fleet_identity(const struct key *key, char room[KEY_TEXT_BYTES])
{
	char text[KEY_TEXT_BYTES];

	if (key->id_bytes) {
		hex_write_bytes(room, key->id, key->id_bytes);
		return;
	}
	key_text(key, text);
	snprintf(room, KEY_TEXT_BYTES, "%s", strchr(text, '/') + 1);
}

static uint64_t fleet_number(const char *url, const char *identity)
{
	uint8_t digest[DIGEST_SHA256_BYTES] = { 0 };
	uint64_t number;
	char *text;

	if (asprintf(&text, "%s\n%s", url, identity) < 0)
		return 0;
	digest_sha256(text, strlen(text), digest);
	free(text);
	memcpy(&number, digest, sizeof(number));
	return number;
}

struct upstream *fleet_owner(const struct upstream_set *set, const struct key *key, size_t index)
{
	uint64_t own, limit = UINT64_MAX;
	char identity[KEY_TEXT_BYTES];
	struct upstream *best = NULL;

	if (!set->peer_count)
		return NULL;
	fleet_identity(key, identity);
	own = fleet_number(set->self, identity);
	for (size_t round = 0; round <= index; round++) {
		uint64_t greatest = 0;

		best = NULL;
		for (size_t i = 0; i < set->count; i++) {
			uint64_t number;

			if (set->list[i]->kind != UPSTREAM_PEER)
				continue;
			number = fleet_number(set->list[i]->url, identity);
			if (number > own && number < limit && number >= greatest) {
				greatest = number;
				best = set->list[i];
			}
		}
		if (!best)
			return NULL;
		limit = greatest;
	}
	return best;
}
