/* SPDX-License-Identifier: MIT */
#include "symsrv/util/lru_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hash.h"

enum {
	SHARDS = 64
};

struct entry {
	UT_hash_handle hh;
	void *value;
	char text[];
};

struct shard {
	pthread_mutex_t lock;
	struct entry *entries; /* in order of use, the least recently used first */
};

struct lru_table {
	struct shard shards[SHARDS];
	size_t most_per_shard;
	void (*release)(void *value);
};

struct lru_table *lru_table_create(size_t most_values, void (*release)(void *value))
{
	struct lru_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->most_per_shard = (most_values + SHARDS - 1) / SHARDS;
	table->release = release;
	for (size_t i = 0; i < SHARDS; i++)
		pthread_mutex_init(&table->shards[i].lock, NULL);
	return table;
}

/* Removes the entry and returns its value. Releasing it may take long: without the lock if
 * possible.
 */
static void *take_out(struct shard *shard, struct entry *entry)
{
	void *value = entry->value;

	HASH_DEL(shard->entries, entry);
	free(entry);
	return value;
}

void lru_table_filter(struct lru_table *table, bool (*keep)(void *value, const void *context),
		      const void *context)
{
	for (size_t i = 0; i < SHARDS; i++) {
		struct shard *shard = &table->shards[i];
		struct entry *entry, *next;

		pthread_mutex_lock(&shard->lock);
		HASH_ITER(hh, shard->entries, entry, next)
		{
			if (!keep || !keep(entry->value, context))
				table->release(take_out(shard, entry));
		}
		pthread_mutex_unlock(&shard->lock);
	}
}

void lru_table_destroy(struct lru_table *table)
{
	if (!table)
		return;
	lru_table_filter(table, NULL, NULL);
	for (size_t i = 0; i < SHARDS; i++)
		pthread_mutex_destroy(&table->shards[i].lock);
	free(table);
}

/* The shard of a text, locked. *ret: the entry of the text, or NULL. */
static struct shard *lock_shard(struct lru_table *table, const char *text, struct entry **ret)
{
	struct shard *shard;
	unsigned int hash;

	HASH_VALUE(text, strlen(text), hash);
	shard = &table->shards[(hash >> 20) % SHARDS];
	pthread_mutex_lock(&shard->lock);
	HASH_FIND_STR(shard->entries, text, *ret);
	return shard;
}

void lru_table_add(struct lru_table *table, const char *text, void *value)
{
	size_t text_bytes = strlen(text) + 1;
	struct entry *entry = malloc(sizeof(*entry) + text_bytes), *old;
	void *given_up[2] = { NULL, NULL };
	struct shard *shard;

	if (!entry) {
		table->release(value);
		return;
	}
	entry->value = value;
	memcpy(entry->text, text, text_bytes);
	shard = lock_shard(table, text, &old);
	if (old)
		given_up[0] = take_out(shard, old);
	if (HASH_COUNT(shard->entries) >= table->most_per_shard)
		given_up[1] = take_out(shard, shard->entries);
	HASH_ADD_STR(shard->entries, text, entry);
	if (!hash_added(entry)) {
		free(entry);
		table->release(value);
	}
	pthread_mutex_unlock(&shard->lock);
	for (int i = 0; i < 2; i++)
		if (given_up[i])
			table->release(given_up[i]);
}

void *lru_table_find(struct lru_table *table, const char *text,
		     void *(*use)(void *value, const void *context), const void *context)
{
	void *found = NULL, *given_up = NULL;
	struct entry *entry;
	struct shard *shard = lock_shard(table, text, &entry);

	if (entry) {
		found = use(entry->value, context);
		HASH_DEL(shard->entries, entry);
		if (found)
			HASH_ADD_STR(shard->entries, text, entry);
		if (!found || !hash_added(entry)) {
			given_up = entry->value;
			free(entry);
		}
	}
	pthread_mutex_unlock(&shard->lock);
	if (given_up)
		table->release(given_up);
	return found;
}

static void *use_none(void *value, const void *context)
{
	(void)value;
	(void)context;
	return NULL;
}

void lru_table_remove(struct lru_table *table, const char *text)
{
	lru_table_find(table, text, use_none, NULL);
}

size_t lru_table_count(struct lru_table *table)
{
	size_t count = 0;

	for (size_t i = 0; i < SHARDS; i++) {
		pthread_mutex_lock(&table->shards[i].lock);
		count += HASH_COUNT(table->shards[i].entries);
		pthread_mutex_unlock(&table->shards[i].lock);
	}
	return count;
}
