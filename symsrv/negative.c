/* SPDX-License-Identifier: MIT */
#include "symsrv/negative.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hash.h"

#define SHARDS 64u
/* 64 * 2048 entries of about 200 bytes: 26 MB at the very most. */
static const unsigned int most_per_shard = 2048;

struct entry {
	UT_hash_handle hh;
	int64_t until_ms;
	unsigned int state;
	bool named;
	char text[];
};

struct shard {
	pthread_mutex_t lock;
	struct entry *entries; /* in the order of their entering */
};

struct negative {
	struct shard shards[SHARDS];
	atomic_uint clears;
};

struct negative *negative_create(void)
{
	struct negative *negative = calloc(1, sizeof(*negative));
	unsigned int i;

	for (i = 0; negative && i < SHARDS; i++)
		pthread_mutex_init(&negative->shards[i].lock, NULL);
	return negative;
}

static void drop(struct shard *shard, struct entry *entry)
{
	HASH_DEL(shard->entries, entry);
	free(entry);
}

void negative_clear(struct negative *negative)
{
	unsigned int i;

	/* First: what is entered from here on is of the state before. */
	negative->clears++;
	for (i = 0; i < SHARDS; i++) {
		struct shard *shard = &negative->shards[i];

		pthread_mutex_lock(&shard->lock);
		while (shard->entries)
			drop(shard, shard->entries);
		pthread_mutex_unlock(&shard->lock);
	}
}

void negative_destroy(struct negative *negative)
{
	unsigned int i;

	if (!negative)
		return;
	negative_clear(negative);
	for (i = 0; i < SHARDS; i++)
		pthread_mutex_destroy(&negative->shards[i].lock);
	free(negative);
}

static struct shard *shard_of(struct negative *negative, unsigned int hash)
{
	return &negative->shards[(hash >> 20) % SHARDS];
}

void negative_add(struct negative *negative, const char *text, bool named, int64_t until_ms,
		  unsigned int state)
{
	size_t length = strlen(text);
	struct entry *entry = malloc(sizeof(*entry) + length + 1), *old;
	struct shard *shard;
	unsigned int hash;

	if (!entry)
		return;
	memcpy(entry->text, text, length + 1);
	entry->until_ms = until_ms;
	entry->state = state;
	entry->named = named;
	HASH_VALUE(text, length, hash);
	shard = shard_of(negative, hash);
	pthread_mutex_lock(&shard->lock);
	HASH_FIND_BYHASHVALUE(hh, shard->entries, text, length, hash, old);
	if (old)
		drop(shard, old);
	if (HASH_COUNT(shard->entries) >= most_per_shard)
		drop(shard, shard->entries);
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, shard->entries, entry->text, length, hash, entry);
	if (!hash_added(entry))
		free(entry);
	pthread_mutex_unlock(&shard->lock);
}

bool negative_contains(struct negative *negative, const char *text, size_t text_bytes, bool named,
		       int64_t now_ms, unsigned int state)
{
	struct shard *shard;
	struct entry *entry;
	unsigned int hash;
	bool found;

	HASH_VALUE(text, text_bytes, hash);
	shard = shard_of(negative, hash);
	pthread_mutex_lock(&shard->lock);
	HASH_FIND_BYHASHVALUE(hh, shard->entries, text, text_bytes, hash, entry);
	if (entry && (now_ms >= entry->until_ms || entry->state != state)) {
		drop(shard, entry);
		entry = NULL;
	}
	found = entry && (entry->named || !named);
	pthread_mutex_unlock(&shard->lock);
	return found;
}

void negative_remove(struct negative *negative, const char *text)
{
	size_t length = strlen(text);
	struct shard *shard;
	struct entry *entry;
	unsigned int hash;

	HASH_VALUE(text, length, hash);
	shard = shard_of(negative, hash);
	pthread_mutex_lock(&shard->lock);
	HASH_FIND_BYHASHVALUE(hh, shard->entries, text, length, hash, entry);
	if (entry)
		drop(shard, entry);
	pthread_mutex_unlock(&shard->lock);
}

unsigned int negative_clears(const struct negative *negative)
{
	return negative->clears;
}

size_t negative_count(struct negative *negative)
{
	size_t count = 0;
	unsigned int i;

	for (i = 0; i < SHARDS; i++) {
		pthread_mutex_lock(&negative->shards[i].lock);
		count += HASH_COUNT(negative->shards[i].entries);
		pthread_mutex_unlock(&negative->shards[i].lock);
	}
	return count;
}
