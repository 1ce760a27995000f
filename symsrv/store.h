/* SPDX-License-Identifier: MIT */
/*
 * The store: objects on disk by key. Only store*.c knows how it is laid out:
 *
 *   DIR/lock               held by the server that uses the store
 *   DIR/tmp/arrival-N      files that arrive; removed when the store is opened
 *   DIR/objects/AA/REST    AA REST: SHA-256 of the key's text in hex
 *
 * An object is one file: its content, a record in lines "name: value", and 16
 * bytes that say how long the record is. So it is published by one rename and
 * there is no moment at which content and record disagree; what a crash leaves
 * lies in tmp/. The time of last change of a file is that of its last use.
 *
 * Refuses to know what the content means: whoever publishes has verified it.
 * Functions return 0 or a negative errno; all may be called by several threads.
 */
#ifndef SYMSRV_STORE_H
#define SYMSRV_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

#define STORE_NAME_BYTES   256
#define STORE_SOURCE_BYTES 64

/* What is known of an object beside its content. */
struct store_record {
	char *key;                       /* text of the key */
	char name[STORE_NAME_BYTES];     /* file name, "" when nobody said */
	char source[STORE_SOURCE_BYTES]; /* name of the upstream it came from */
	char sha256[65];
	uint64_t size_bytes;
	int64_t fetched_s; /* since 1970 */
	uint32_t contents; /* enum sym_content */
};

void store_record_deinit(struct store_record *record);

struct store_usage {
	uint64_t used_bytes; /* objects as they lie on the disk */
	uint64_t arriving_bytes;
	uint64_t max_bytes;
	uint64_t object_count;
	uint64_t evicted_count;
	uint64_t corrupt_count; /* objects that were removed because their bytes had changed */
	uint64_t free_bytes;    /* of the file system */
	bool is_scanned;        /* everything that was there at the start is counted */
};

/* For a log, of a directory: */
#define STORE_OF_OTHERS                                                                            \
	"%s: has objects/ or tmp/ and no file `lock`, so it is no store, and nothing is done to "  \
	"it"

/* Opens or creates; -EWOULDBLOCK when another server has it, -ENOTEMPTY: STORE_OF_OTHERS. */
int store_open(const char *directory, uint64_t max_bytes, struct store **ret);
void store_close(struct store *store);

/*
 * To be told when objects were evicted: who holds them open keeps their bytes on
 * the disk. Called without locks, on the thread that needed the room. Set before
 * anything arrives.
 */
void store_on_eviction(struct store *store, void (*evicted)(void *context), void *context);

/* Counts what is there, and evicts what is too much; to be called once, on a thread that may take
 * long. `stop` ends it early. */
void store_scan(struct store *store, const bool *stop);

/* Evicts what is too much now. */
void store_set_max(struct store *store, uint64_t max_bytes);
void store_usage(struct store *store, struct store_usage *ret);
/* True when a file can be created now. */
bool store_is_writable(struct store *store);

/*
 * Finds an object; *fd_ret is open for reading, its content is [0, size_bytes).
 * The checksum is compared when the object is opened for the first time since
 * the start; an object that fails is removed and not found. -ENOENT: there is none.
 */
int store_find(struct store *store, const char *key, int *fd_ret, struct store_record *record);
/* The same, for threads that others wait for. -EAGAIN: its checksum must be compared, and it has
 * more bytes than `most_bytes`. */
int store_find_quickly(struct store *store, const char *key, uint64_t most_bytes, int *fd_ret,
		       struct store_record *record);

/* Marks as used just now; in the time of its file too, but not within an hour of the last change.
 */
void store_touch(struct store *store, const char *key);
int store_remove(struct store *store, const char *key);

/* A file that arrives. */
struct store_arrival;

int store_begin(struct store *store, struct store_arrival **ret);
/*
 * How long it will be, where that is known; it has the room for that then. -ENOSPC:
 * the store or the disk will never have room for it, so nothing need be evicted to
 * find that out. -EAGAIN: others that arrive hold the room now, to be asked again.
 */
int store_expect(struct store_arrival *arrival, uint64_t bytes);
/*
 * Appends all or nothing. -EAGAIN: others that arrive hold the room now, to be called
 * again; -EDEADLK: so they do, and wait for what this one holds, which must begin again.
 * -ENOSPC: the disk or the store is full and nothing more can be evicted, or this is
 * more than one object may have: 15/16 of the store, half of it if its length was
 * not known beforehand.
 */
int store_append(struct store_arrival *arrival, const void *bytes, size_t count);
/* Throws away what has arrived, to begin again. */
int store_restart(struct store_arrival *arrival);
int store_arrival_fd(const struct store_arrival *arrival);
uint64_t store_arrival_bytes(const struct store_arrival *arrival);
/* Makes it an object; `record` needs key, name, source and contents, the rest is filled in. Ends
 * the arrival in any case. */
int store_publish(struct store_arrival *arrival, struct store_record *record);
/* The same, but the object is not evicted before the arrival is abandoned: who waits for it may
 * open it. */
int store_publish_held(struct store_arrival *arrival, struct store_record *record);
void store_abandon(struct store_arrival *arrival);

/* Calls `visit` with the key and size of every object until it returns false. No store function may
 * be called in it. */
void store_each(struct store *store,
		bool (*visit)(void *context, const char *key, const char *name,
			      uint64_t size_bytes),
		void *context);

/*
 * Reads every object again: record, checksum, and `check` (identity) if given, which
 * returns 0, -EBADMSG with a reason (static) for what is to be removed, or another negative errno
 * where it could not look; that object stays.
 * Calls `report` for each that fails, after removing it, with 0 or the negative errno of what kept
 * it from being read or removed. Works beside a running server. -ENOTEMPTY: STORE_OF_OTHERS.
 */
struct store_scrub_result {
	uint64_t good_count;
	uint64_t good_bytes;
	uint64_t removed_count;
	uint64_t failed_count; /* could not be read, or not removed */
};
int store_scrub(const char *directory,
		int (*check)(int fd, const struct store_record *record, const char **reason_ret),
		void (*report)(const char *name, const char *reason, int failure),
		struct store_scrub_result *ret);

#endif
