/* SPDX-License-Identifier: MIT */
#include "symsrv/negative.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"

#define SHARDS 64u
/* 64 * 2048 entries of about 200 bytes: 26 MB at the very most. */
static const unsigned int most_per_shard = 2048;

struct entry {
	UT_hash_handle hh;
	int64_t until_ms;
	unsigned int state;
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

/* What an entry with a name is found by: on the heap, or NULL. No name has a line feed. */
static char *join(const char *text, size_t text_bytes, const char *name, size_t *length_ret)
{
	char *joined;
	int length = asprintf(&joined, "%.*s\n%s", (int)text_bytes, text, name);

	*length_ret = length < 0 ? 0 : (size_t)length;
	return length < 0 ? NULL : joined;
}

static void add(struct negative *negative, const char *text, size_t length, int64_t until_ms,
		unsigned int state)
{
	struct entry *entry = malloc(sizeof(*entry) + length + 1), *old;
	struct shard *shard;
	unsigned int hash;

	if (!entry)
		return;
	memcpy(entry->text, text, length + 1);
	entry->until_ms = until_ms;
	entry->state = state;
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

void negative_add(struct negative *negative, const char *text, const char *name, int64_t until_ms,
		  unsigned int state)
{
	char *joined AUTO_FREE = NULL;
	size_t length;

	add(negative, text, strlen(text), until_ms, state);
	if (!name)
		return;
	joined = join(text, strlen(text), name, &length);
	if (joined)
		add(negative, joined, length, until_ms, state);
}

static bool contains(struct negative *negative, const char *text, size_t text_bytes, int64_t now_ms,
		     unsigned int state)
{
	struct shard *shard;
	struct entry *entry;
	unsigned int hash;

	HASH_VALUE(text, text_bytes, hash);
	shard = shard_of(negative, hash);
	pthread_mutex_lock(&shard->lock);
	HASH_FIND_BYHASHVALUE(hh, shard->entries, text, text_bytes, hash, entry);
	if (entry && (now_ms >= entry->until_ms || entry->state != state)) {
		drop(shard, entry);
		entry = NULL;
	}
	pthread_mutex_unlock(&shard->lock);
	return entry;
}

bool negative_contains(struct negative *negative, const char *text, size_t text_bytes,
		       const char *name, int64_t now_ms, unsigned int state)
{
	char *joined AUTO_FREE = NULL;
	size_t length;

	if (!name)
		return contains(negative, text, text_bytes, now_ms, state);
	joined = join(text, text_bytes, name, &length);
	return joined && contains(negative, joined, length, now_ms, state);
}

static void remove_entry(struct negative *negative, const char *text, size_t length)
{
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

void negative_remove(struct negative *negative, const char *text, const char *name)
{
	char *joined AUTO_FREE = NULL;
	size_t length;

	remove_entry(negative, text, strlen(text));
	if (!name)
		return;
	joined = join(text, strlen(text), name, &length);
	if (joined)
		remove_entry(negative, joined, length);
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
