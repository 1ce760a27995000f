/* SPDX-License-Identifier: MIT */
#include "symsrv/lookup/cached_object.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symsrv/util/lru_table.h"

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

static void release(void *object)
{
	object_release(object);
}

struct lru_table *object_table_create(size_t most_objects)
{
	return lru_table_create(most_objects, release);
}

static bool is_deleted(const struct object *object)
{
	struct stat status;

	return !fstat(object->fd, &status) && !status.st_nlink;
}

static bool is_on_disk(void *object, const void *context)
{
	(void)context;
	return !is_deleted(object);
}

void object_table_drop_deleted(struct lru_table *table)
{
	lru_table_filter(table, is_on_disk, NULL);
}

/* One call when an indexed file is sent, because it may be written to at any time. */
static bool is_changed(const struct object *object)
{
	const struct timespec *time = &object->unchanged_since;
	struct stat status;

	return time->tv_sec &&
	       (fstat(object->fd, &status) || status.st_mtim.tv_sec != time->tv_sec ||
		status.st_mtim.tv_nsec != time->tv_nsec);
}

static void *take_valid(void *value, const void *now_ms)
{
	struct object *object = value;

	return *(const int64_t *)now_ms < object->valid_until_ms ? object_take(object) : NULL;
}

struct object *object_table_find(struct lru_table *table, const char *text, int64_t now_ms)
{
	struct object *found = lru_table_find(table, text, take_valid, &now_ms);

	if (found && is_changed(found)) {
		lru_table_remove(table, found->text);
		object_release(found);
		return NULL;
	}
	if (found)
		atomic_store_explicit(&found->used_ms, now_ms, memory_order_relaxed);
	return found;
}

void object_table_add(struct lru_table *table, struct object *object)
{
	lru_table_add(table, object->text, object_take(object));
	/* Checked only now: a thread that deletes a file reads the table afterwards. */
	if (is_deleted(object))
		lru_table_remove(table, object->text);
}

struct visit {
	int64_t since_ms;
	void (*visit)(void *context, const char *text);
	void *context;
};

static bool visit_used(void *value, const void *context)
{
	const struct visit *visit = context;
	const struct object *object = value;

	if (object->used_ms >= visit->since_ms)
		visit->visit(visit->context, object->text);
	return true;
}

void object_table_each_used(struct lru_table *table, int64_t since_ms,
			    void (*visit)(void *context, const char *text), void *context)
{
	lru_table_filter(table, visit_used, &(struct visit){ since_ms, visit, context });
}
