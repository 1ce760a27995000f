/* SPDX-License-Identifier: MIT */
/*
 * An object that is ready to be sent: an open file, the range of it that is
 * meant, and what the headers say. Shared by reference count, immutable once
 * made. What the server attaches to it (a prepared response) it does not know.
 *
 * The table below keeps the objects that were asked for of late, so that a hit
 * costs one look-up and no system call. Bounded by number: each holds descriptors.
 */
#ifndef SYMSRV_OBJECT_H
#define SYMSRV_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

struct object {
	atomic_uint references;
	int fd;
	uint64_t offset; /* of the range in the file */
	uint64_t size_bytes;
	int64_t modified_s;
	/* Time of a file that belongs to somebody else, 0 of others: with another one it is looked
	 * up again. */
	struct timespec unchanged_since;
	int64_t valid_until_ms; /* beyond it the object is looked up again; INT64_MAX: never */
	_Atomic int64_t used_ms;
	bool may_be_bettered; /* soon: nobody is to keep it */
	char etag[112];       /* with quotes */
	char name[256];       /* file name, "" when unknown */
	char source[64];      /* upstream, or "index" */
	_Atomic(void *) attachment;
	void (*_Atomic detach)(void *attachment);
	char text[]; /* what it is found by */
};

/* Takes the descriptor over, also on failure. NULL: no memory. */
struct object *object_create(const char *text, int fd);
struct object *object_take(struct object *object);
void object_release(struct object *object); /* NULL is fine */

struct object_table;

struct object_table *object_table_create(size_t most_objects);
void object_table_destroy(struct object_table *table);

/* A reference to the object, or NULL. */
struct object *object_table_find(struct object_table *table, const char *text, size_t text_bytes,
				 int64_t now_ms);
/* The table takes its own reference, unless its file was deleted; an older object of the same text
 * goes. */
void object_table_add(struct object_table *table, struct object *object);
void object_table_remove(struct object_table *table, const char *text);
void object_table_clear(struct object_table *table);
/*
 * Drops the objects whose file has no name any more: they were evicted or found
 * damaged, and an open descriptor would keep their bytes on the disk.
 */
void object_table_drop_deleted(struct object_table *table);
/* Calls `visit` for each object used since `since_ms`. */
void object_table_each_used(struct object_table *table, int64_t since_ms,
			    void (*visit)(void *context, const char *text), void *context);

#endif
