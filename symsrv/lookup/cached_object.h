/* SPDX-License-Identifier: MIT */
/*
 * An object that can be sent: an open file, a range of it, and what the headers need. Shared by
 * reference count, immutable once made. It does not know what the server attaches to it (a prepared
 * response).
 *
 * The table below keeps recently used objects, so that a hit costs one look-up and no system call.
 * Its size is limited, because each object holds descriptors.
 */
#ifndef SYMSRV_LOOKUP_CACHED_OBJECT_H
#define SYMSRV_LOOKUP_CACHED_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "symsrv/util/lru_table.h"

struct object {
	atomic_uint references;
	int fd;
	uint64_t offset; /* of the range in the file */
	uint64_t size_bytes;
	int64_t modified_s;
	/* Time of an indexed file, else 0: with another time the file is looked up again. */
	struct timespec unchanged_since;
	int64_t valid_until_ms; /* after that the object is looked up again; INT64_MAX: never */
	_Atomic int64_t used_ms;
	bool may_be_bettered; /* temporary: clients must not keep it */
	char etag[112];       /* with quotes */
	char name[256];       /* file name, "" when unknown */
	char source[64];      /* upstream, or "index" */
	_Atomic(void *) attachment;
	void (*_Atomic detach)(void *attachment);
	char text[]; /* its key in the table */
};

/* Adopts the descriptor, also on failure. NULL: out of memory. */
struct object *object_create(const char *text, int fd);
struct object *object_take(struct object *object);
void object_release(struct object *object); /* NULL is allowed */

/* Creates the table of objects by their text, to be destroyed by lru_table_destroy(). */
struct lru_table *object_table_create(size_t most_objects);

/* A reference to the object, or NULL. */
struct object *object_table_find(struct lru_table *table, const char *text, int64_t now_ms);
/* The table takes its own reference, unless the file was deleted; replaces an older object with the
 * same text. */
void object_table_add(struct lru_table *table, struct object *object);
/*
 * Drops the objects whose file was deleted: it was evicted or damaged, and an open descriptor would
 * keep its bytes on the disk.
 */
void object_table_drop_deleted(struct lru_table *table);
/* Calls `visit` for each object used since `since_ms`. */
void object_table_each_used(struct lru_table *table, int64_t since_ms,
			    void (*visit)(void *context, const char *text), void *context);

#endif
