/* SPDX-License-Identifier: MIT */
/*
 * The store: objects on disk by key. Only store*.c knows its layout:
 *
 *   DIR/lock               held by the server that uses the store
 *   DIR/tmp/arrival-N      files that arrive; removed when the store is opened
 *   DIR/objects/AA/REST    AA REST: SHA-256 of the key's text in hex
 *
 * An object is one file: its content, a record in lines "name: value", and 16 bytes with the length
 * of the record. One rename publishes it, so content and record always agree; what a crash leaves
 * is in tmp/. The modification time of a file is the time of its last use.
 *
 * The caller has verified the content. The store knows only that an object with debug information
 * is better than one without. Functions return 0 or a negative errno, and are safe for several
 * threads.
 */
#ifndef SYMSRV_STORE_STORE_H
#define SYMSRV_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

#define STORE_NAME_BYTES   256
#define STORE_SOURCE_BYTES 64

/* The record of an object. */
struct store_record {
	char *key;                       /* the key's text */
	char name[STORE_NAME_BYTES];     /* file name, "" when unknown */
	char source[STORE_SOURCE_BYTES]; /* name of the upstream it came from */
	char sha256[65];
	uint64_t size_bytes;
	int64_t fetched_s; /* seconds since 1970 */
	uint32_t contents; /* enum sym_content */
};

void store_record_deinit(struct store_record *record);

#define STORE_OBJECT_PATH_BYTES 96
/* "objects/AA/REST" for a key: its path in every store. Returns 0 or a negative errno. */
int store_object_path(const char *key, char path[STORE_OBJECT_PATH_BYTES]);

struct store_usage {
	uint64_t used_bytes; /* size of the objects on the disk */
	uint64_t arriving_bytes;
	uint64_t max_bytes;
	uint64_t object_count;
	uint64_t evicted_count;
	uint64_t corrupt_count; /* objects that were removed because their bytes had changed */
	uint64_t free_bytes;    /* of the file system */
	bool is_scanned;        /* everything that existed at the start is counted */
};

/* Why a store cannot be opened or scrubbed; `failure`: a negative errno. Static. */
const char *store_failure_text(int failure);

/* Opens or creates a store; -EWOULDBLOCK when another server uses it, -ENOTEMPTY: it has files and
 * is no store. */
int store_open(const char *directory, uint64_t max_bytes, struct store **ret);
void store_close(struct store *store);

/*
 * `on_evict` is called when objects were evicted, because an open descriptor keeps their bytes on
 * the disk. It is called without locks, on the thread that needed the room. Set it before anything
 * arrives.
 */
void store_on_eviction(struct store *store, void (*evicted)(void *context), void *context);

/* Counts the objects, and evicts those beyond the limit. Call it once, on a thread that may take
 * long. `stop` ends it early. */
void store_scan(struct store *store, const bool *stop);

/* Evicts objects beyond the limit now. */
void store_set_max(struct store *store, uint64_t max_bytes);
void store_usage(struct store *store, struct store_usage *ret);
/* True if a file can be created now. */
bool store_is_writable(struct store *store);

/*
 * Finds an object; *fd_ret is open for reading, its content is [0, size_bytes). The checksum is
 * compared when the object is opened for the first time since the start; a damaged object is
 * removed and not found. -ENOENT: there is none.
 */
int store_find(struct store *store, const char *key, int *fd_ret, struct store_record *record);
/* As store_open_object(), for threads that must not block long. -EAGAIN: its checksum must be
 * compared, and it has more than `most_bytes`. */
int store_find_quickly(struct store *store, const char *key, uint64_t most_bytes, int *fd_ret,
		       struct store_record *record);

/* Marks an object as used now; also in the time of its file, but at most once an hour. */
void store_touch(struct store *store, const char *key);

/* An arrival: a file that is being received. */
struct store_incoming;

int store_begin(struct store *store, struct store_incoming **ret);
/*
 * Announces its length, if known, and reserves room for it. -ENOSPC: the store or the disk can
 * never have the room; nothing is evicted to find that out. -EAGAIN: other arrivals hold the room
 * now, call again.
 */
int store_reserve(struct store_incoming *incoming, uint64_t bytes);
/*
 * Appends all or nothing. -EAGAIN: other arrivals hold the room now, call again; -EDEADLK: they do,
 * and wait for what this one holds, so it must start again. -ENOSPC: the disk or the store is full
 * and nothing more can be evicted, or an object may not be so large: 15/16 of the store, half of it
 * when the length was unknown.
 */
int store_append(struct store_incoming *incoming, const void *bytes, size_t count);
/* Drops what has arrived, to start again. */
int store_restart(struct store_incoming *incoming);
int store_incoming_fd(const struct store_incoming *incoming);
uint64_t store_incoming_bytes(const struct store_incoming *incoming);
/*
 * The arrival is an object file of another store: checks that it is the object of `key`, that its
 * checksum holds, and drops its record, which is in *record. -EBADMSG: it is not. The caller calls
 * store_record_deinit().
 */
int store_unwrap(struct store_incoming *incoming, const char *key, struct store_record *record);
/*
 * Publishes the arrival as an object, which replaces another one of that key. -EEXIST: a better one
 * is there, and stays. The caller sets key, name, source and contents of `record`; the rest is
 * filled in. Ends the arrival in any case.
 */
int store_publish(struct store_incoming *incoming, struct store_record *record);
/* As store_publish(), but the object is not evicted before the arrival is abandoned, so that
 * waiting clients can open it. */
int store_publish_held(struct store_incoming *incoming, struct store_record *record);
void store_abandon(struct store_incoming *incoming);

/* Calls `visit` with the key and the file name ("" when unknown) of every object until it returns
 * false. `visit` must call no store function. */
void store_each(struct store *store,
		bool (*visit)(void *context, const char *key, const char *name), void *context);

/*
 * Reads every object: record, checksum, and `check` (identity) if given. `check` returns 0,
 * -EBADMSG with a reason (static) for an object to remove, or another negative errno when it could
 * not look; then the object stays. Calls `report` for each failure, after removing the object, with
 * 0 or the negative errno of the failed read or removal. Works beside a running server. -ENOTEMPTY:
 * as for store_open().
 */
struct store_scrub_result {
	uint64_t good_count;
	uint64_t good_bytes;
	uint64_t removed_count;
	uint64_t failed_count; /* could not be read or removed */
};
int store_scrub(const char *directory,
		int (*check)(int fd, const struct store_record *record, const char **reason_ret),
		void (*report)(const char *name, const char *reason, int failure),
		struct store_scrub_result *ret);

#endif
