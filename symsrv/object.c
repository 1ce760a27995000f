/* SPDX-License-Identifier: MIT */
#include "symsrv/object.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/hash.h"

#define SHARDS 64u

struct slot {
	UT_hash_handle hh;
	struct object *object;
};

struct shard {
	pthread_mutex_t lock;
	struct slot *slots;
};

struct object_table {
	struct shard shards[SHARDS];
	size_t most_per_shard;
};

struct object *object_create(const char *text, int fd)
{
	size_t length = strlen(text);
	struct object *object = calloc(1, sizeof(*object) + length + 1);

	if (!object) {
		close(fd);
		return NULL;
	}
	object->references = 1;
	object->fd = fd;
	object->valid_until_ms = INT64_MAX;
	memcpy(object->text, text, length + 1);
	return object;
}

struct object *object_take(struct object *object)
{
	atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
	return object;
}

void object_release(struct object *object)
{
	if (!object || atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) != 1)
		return;
	if (object->attachment)
		object->detach(object->attachment);
	close(object->fd);
	free(object);
}

/* ---- the table ---- */

struct object_table *object_table_create(size_t most_objects)
{
	struct object_table *table = calloc(1, sizeof(*table));
	unsigned int i;

	if (!table)
		return NULL;
	table->most_per_shard = (most_objects + SHARDS - 1) / SHARDS;
	for (i = 0; i < SHARDS; i++)
		pthread_mutex_init(&table->shards[i].lock, NULL);
	return table;
}

/* Lock held. The object itself is released by the caller, outside of the lock if it can. */
static struct object *take_out(struct shard *shard, struct slot *slot)
{
	struct object *object = slot->object;

	HASH_DEL(shard->slots, slot);
	free(slot);
	return object;
}

static bool is_deleted(const struct object *object)
{
	struct stat status;

	return !fstat(object->fd, &status) && !status.st_nlink;
}

void object_table_drop_deleted(struct object_table *table)
{
	struct slot *slot, *next;
	unsigned int i;

	for (i = 0; i < SHARDS; i++) {
		struct shard *shard = &table->shards[i];

		pthread_mutex_lock(&shard->lock);
		HASH_ITER(hh, shard->slots, slot, next)
		{
			if (is_deleted(slot->object))
				object_release(take_out(shard, slot));
		}
		pthread_mutex_unlock(&shard->lock);
	}
}

void object_table_clear(struct object_table *table)
{
	unsigned int i;

	for (i = 0; i < SHARDS; i++) {
		struct shard *shard = &table->shards[i];

		pthread_mutex_lock(&shard->lock);
		while (shard->slots)
			object_release(take_out(shard, shard->slots));
		pthread_mutex_unlock(&shard->lock);
	}
}

void object_table_destroy(struct object_table *table)
{
	unsigned int i;

	if (!table)
		return;
	object_table_clear(table);
	for (i = 0; i < SHARDS; i++)
		pthread_mutex_destroy(&table->shards[i].lock);
	free(table);
}

static struct shard *shard_of(struct object_table *table, unsigned int hash)
{
	return &table->shards[(hash >> 20) % SHARDS];
}

/* One call where an indexed file is served: somebody may write into it at any time. */
static bool is_changed(const struct object *object)
{
	const struct timespec *time = &object->unchanged_since;
	struct stat status;

	return time->tv_sec &&
	       (fstat(object->fd, &status) || status.st_mtim.tv_sec != time->tv_sec ||
		status.st_mtim.tv_nsec != time->tv_nsec);
}

struct object *object_table_find(struct object_table *table, const char *text, size_t text_bytes,
				 int64_t now_ms)
{
	struct object *found = NULL, *stale = NULL;
	struct shard *shard;
	struct slot *slot;
	unsigned int hash;

	HASH_VALUE(text, text_bytes, hash);
	shard = shard_of(table, hash);
	pthread_mutex_lock(&shard->lock);
	HASH_FIND_BYHASHVALUE(hh, shard->slots, text, text_bytes, hash, slot);
	if (slot && now_ms >= slot->object->valid_until_ms)
		stale = take_out(shard, slot);
	else if (slot)
		found = object_take(slot->object);
	pthread_mutex_unlock(&shard->lock);
	object_release(stale);
	if (found && is_changed(found)) {
		object_table_remove(table, found->text);
		object_release(found);
		return NULL;
	}
	if (found)
		atomic_store_explicit(&found->used_ms, now_ms, memory_order_relaxed);
	return found;
}

/* A shard has few slots: looking at all of them is cheaper than keeping an order on every hit. */
static struct slot *least_used(struct shard *shard)
{
	struct slot *slot, *next, *least = shard->slots;

	HASH_ITER(hh, shard->slots, slot, next)
	{
		if (slot->object->used_ms < least->object->used_ms)
			least = slot;
	}
	return least;
}

void object_table_add(struct object_table *table, struct object *object)
{
	struct slot *slot = calloc(1, sizeof(*slot)), *old;
	struct object *gone[2] = { NULL, NULL };
	size_t length = strlen(object->text);
	struct shard *shard;
	unsigned int hash;

	if (!slot)
		return;
	slot->object = object_take(object);
	HASH_VALUE(object->text, length, hash);
	shard = shard_of(table, hash);
	pthread_mutex_lock(&shard->lock);
	HASH_FIND_BYHASHVALUE(hh, shard->slots, object->text, length, hash, old);
	if (old)
		gone[0] = take_out(shard, old);
	if (HASH_COUNT(shard->slots) >= table->most_per_shard)
		gone[1] = take_out(shard, least_used(shard));
	HASH_ADD_KEYPTR_BYHASHVALUE(hh, shard->slots, object->text, length, hash, slot);
	if (!hash_added(slot)) {
		free(slot);
		object_release(object);
	}
	pthread_mutex_unlock(&shard->lock);
	object_release(gone[0]);
	object_release(gone[1]);
	/* Looked at only now: whoever deletes a file looks into the table afterwards. */
	if (is_deleted(object))
		object_table_remove(table, object->text);
}

void object_table_remove(struct object_table *table, const char *text)
{
	size_t length = strlen(text);
	struct object *gone = NULL;
	struct shard *shard;
	struct slot *slot;
	unsigned int hash;

	HASH_VALUE(text, length, hash);
	shard = shard_of(table, hash);
	pthread_mutex_lock(&shard->lock);
	HASH_FIND_BYHASHVALUE(hh, shard->slots, text, length, hash, slot);
	if (slot)
		gone = take_out(shard, slot);
	pthread_mutex_unlock(&shard->lock);
	object_release(gone);
}

void object_table_each_used(struct object_table *table, int64_t since_ms,
			    void (*visit)(void *context, const char *text), void *context)
{
	struct slot *slot, *next;
	unsigned int i;

	for (i = 0; i < SHARDS; i++) {
		struct shard *shard = &table->shards[i];

		pthread_mutex_lock(&shard->lock);
		HASH_ITER(hh, shard->slots, slot, next)
		{
			if (slot->object->used_ms >= since_ms)
				visit(context, slot->object->text);
		}
		pthread_mutex_unlock(&shard->lock);
	}
}
