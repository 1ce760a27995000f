/* SPDX-License-Identifier: MIT */
/*
 * How an object gets into the store and out of it.
 *
 *   store_begin()      a file in tmp/; store_reserve() asks for room, store_append() writes
 *   store_publish()    record and footer behind the content, fsync, one rename to objects/AA/REST
 *   store_find()       opens the object; the first time since the start its checksum is compared
 *   store_evict_bytes  removes the least recently used objects until there is room
 *
 * One table has an entry for each object, with its size, in order of use. It is filled by
 * store_scan() after the start. The lock protects the table and the shares of arrivals
 * (store_quota.h); files are opened, written and flushed without it.
 */
#include "symsrv/store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "symsrv/store/store_file.h"
#include "symsrv/store/store_layout.h"
#include "symsrv/store/store_quota.h"
#include "symsrv/util/digest.h"

/* Eviction makes this much more room than needed, so that it does not run for every object: 1/16 of
 * the maximum. */
static const uint64_t eviction_share = 16;

/* After a restart objects are evicted in the order of the times of their files, which are this
 * exact. */
static const int64_t touch_interval_s = 3600;

struct store_entry {
	char *key;
	char *name;
	uint64_t file_bytes; /* content and record */
	int64_t touched_s;   /* time of the file, seconds since 1970 */
	bool is_checked;     /* it was used since the start, and its checksum compared */
	/* The arrival that it belongs to: it is counted there, and is not evicted. */
	const struct store_incoming *holder;
	UT_hash_handle hh;
};

struct store {
	int directory_fd;
	int lock_fd;
	pthread_mutex_t lock;        /* protects everything below */
	struct store_entry *entries; /* in order of use, the least recently used first */
	uint64_t used_bytes;
	struct store_quota room;
	uint64_t max_bytes;
	uint64_t evicted_count;
	uint64_t corrupt_count;
	uint64_t next_incoming;
	bool is_scanned;
	/* Set once: */
	void (*evicted)(void *context);
	void *evicted_context;
};

struct store_incoming {
	struct store *store;
	int fd;
	uint64_t bytes;
	struct store_share
		share;    /* room of the store: for `bytes`, and for those that are announced */
	bool is_expected; /* its length is known, and it has room for that */
	char *key;        /* key of the object that it has become, or NULL */
	char path[64];    /* in the directory of the store */
};

static void entry_destroy(struct store_entry *entry)
{
	free(entry->key);
	free(entry->name);
	free(entry);
}

/* ---- opening ---- */

const char *store_failure_text(int failure)
{
	if (failure == -ENOTEMPTY)
		return "has files and is no store, so nothing is written there; --store needs an "
		       "empty directory, a new one, or a store";
	return failure == -EWOULDBLOCK ? "another symsrv uses this store" : strerror(-failure);
}

static int store_prepare(struct store *store, const char *directory)
{
	int failure = path_make_directories(directory, 0755);

	if (failure)
		return failure;
	store->directory_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (store->directory_fd < 0)
		return -errno;
	failure = store_file_recognise(store->directory_fd);
	if (failure)
		return failure;
	store->lock_fd = openat(store->directory_fd, "lock",
				O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (store->lock_fd < 0 || flock(store->lock_fd, LOCK_EX | LOCK_NB))
		return -errno;
	failure = store_layout_make(store->directory_fd);
	if (!failure)
		store_layout_empty_tmp(store->directory_fd);
	return failure;
}

int store_open(const char *directory, uint64_t max_bytes, struct store **ret)
{
	struct store *store = calloc(1, sizeof(*store));
	int failure;

	if (!store)
		return -ENOMEM;
	store->directory_fd = store->lock_fd = -1;
	store->max_bytes = max_bytes;
	store_quota_init(&store->room);
	pthread_mutex_init(&store->lock, NULL);
	failure = store_prepare(store, directory);
	if (failure)
		store_close(store);
	else
		*ret = store;
	return failure;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	HASH_DESTROY(store->entries, entry_destroy);
	pthread_mutex_destroy(&store->lock);
	if (store->lock_fd >= 0)
		close(store->lock_fd);
	if (store->directory_fd >= 0)
		close(store->directory_fd);
	free(store);
}

void store_on_eviction(struct store *store, void (*evicted)(void *context), void *context)
{
	store->evicted = evicted;
	store->evicted_context = context;
}

/* ---- the table ---- */

/* Makes it the most recently used one; it need not be in the table yet. NULL: out of memory, and
 * the object is not counted any more. Lock held. */
static struct store_entry *store_place_last(struct store *store, struct store_entry *entry)
{
	if (entry->hh.tbl)
		HASH_DEL(store->entries, entry);
	HASH_ADD_KEYPTR(hh, store->entries, entry->key, strlen(entry->key), entry);
	if (hash_added(entry))
		return entry;
	store->used_bytes -= entry->holder ? 0 : entry->file_bytes;
	entry_destroy(entry);
	return NULL;
}

/* Adds or replaces an entry; lock held. NULL: out of memory, and the object is not counted. */
static struct store_entry *store_enter(struct store *store, const struct store_record *record,
				       uint64_t file_bytes, bool is_checked)
{
	struct store_entry *entry;

	HASH_FIND_STR(store->entries, record->key, entry);
	if (!entry) {
		entry = calloc(1, sizeof(*entry));
		if (!entry)
			return NULL;
		entry->key = strdup(record->key);
		entry->name = strdup(record->name);
		if (!entry->key || !entry->name) {
			entry_destroy(entry);
			return NULL;
		}
	}
	if (!entry->holder)
		store->used_bytes += file_bytes - entry->file_bytes;
	entry->file_bytes = file_bytes;
	entry->touched_s = time(NULL);
	entry->is_checked = is_checked;
	return store_place_last(store, entry);
}

/* From now on it counts as an object, not as an arrival; NULL is allowed. Lock held. */
static void store_unpin(struct store *store, struct store_entry *entry)
{
	if (entry && entry->holder)
		store->used_bytes += entry->file_bytes;
	if (entry)
		entry->holder = NULL;
}

static void store_forget_entry(struct store *store, const char *key)
{
	struct store_entry *entry;

	HASH_FIND_STR(store->entries, key, entry);
	if (!entry)
		return;
	store_unpin(store, entry);
	store->used_bytes -= entry->file_bytes;
	HASH_DEL(store->entries, entry);
	entry_destroy(entry);
}

static void scan_file(struct store *store, int shelf_fd, const char *name)
{
	int fd AUTO_CLOSE = openat(shelf_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct store_record record;
	struct store_entry *entry;
	struct stat status;
	int failure;

	if (fd < 0 || fstat(fd, &status))
		return;
	failure = store_file_read(fd, (uint64_t)status.st_size, &record);
	if (failure) {
		/* Out of memory is no error of the file. */
		if (failure == -EBADMSG || failure == -EIO)
			unlinkat(shelf_fd, name, 0);
		return;
	}
	pthread_mutex_lock(&store->lock);
	HASH_FIND_STR(store->entries, record.key, entry);
	entry = entry ? NULL : store_enter(store, &record, (uint64_t)status.st_size, false);
	/* A clock may have been set back since. */
	if (entry && status.st_mtim.tv_sec < entry->touched_s)
		entry->touched_s = status.st_mtim.tv_sec;
	pthread_mutex_unlock(&store->lock);
	store_record_deinit(&record);
}

static void scan_shelf(struct store *store, const char *name)
{
	DIR *shelf GUARDED(dir) = store_layout_open(store->directory_fd, name);
	struct dirent *file;

	while (shelf && (file = readdir(shelf)))
		if (file->d_name[0] != '.')
			scan_file(store, dirfd(shelf), file->d_name);
}

void store_usage(struct store *store, struct store_usage *ret)
{
	struct statvfs status;

	pthread_mutex_lock(&store->lock);
	*ret = (struct store_usage){
		.used_bytes = store->used_bytes,
		.arriving_bytes = store->room.arriving_bytes,
		.max_bytes = store->max_bytes,
		.object_count = HASH_COUNT(store->entries),
		.evicted_count = store->evicted_count,
		.corrupt_count = store->corrupt_count,
		.is_scanned = store->is_scanned,
	};
	pthread_mutex_unlock(&store->lock);
	if (!fstatvfs(store->directory_fd, &status))
		ret->free_bytes = (uint64_t)status.f_bavail * status.f_frsize;
}

bool store_is_writable(struct store *store)
{
	static const char probe[] = "tmp/.probe";
	int fd = openat(store->directory_fd, probe, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	/* An administrator may have made room. */
	if (fd < 0 && errno == ENOENT && !store_layout_make(store->directory_fd))
		fd = openat(store->directory_fd, probe, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	close(fd);
	unlinkat(store->directory_fd, probe, 0);
	return true;
}

void store_each(struct store *store,
		bool (*visit)(void *context, const char *key, const char *name), void *context)
{
	struct store_entry *entry, *next;

	pthread_mutex_lock(&store->lock);
	HASH_ITER(hh, store->entries, entry, next)
	if (!visit(context, entry->key, entry->name))
		break;
	pthread_mutex_unlock(&store->lock);
}

/* ---- eviction ---- */

/* Most files that are removed before others get the lock: a slow disk may take long for each. */
static const unsigned int eviction_slice = 16;

/* When many files are removed, work that can wait is left to the next time. */
static const unsigned int most_victims = 4096;

/* Uses before the start have the times of the files. Later ones keep their order, behind these. */
static int by_use(const struct store_entry *left, const struct store_entry *right)
{
	int64_t a = left->is_checked ? INT64_MAX : left->touched_s;
	int64_t b = right->is_checked ? INT64_MAX : right->touched_s;

	return (a > b) - (a < b);
}

/* Removes the least recently used object. One that cannot be removed now counts as used. Returns
 * the bytes that were freed. Lock held. */
static uint64_t evict_oldest(struct store *store)
{
	struct store_entry *entry = store->entries;
	uint64_t file_bytes = entry->file_bytes;
	char path[STORE_OBJECT_PATH_BYTES];

	if (entry->holder || store_object_path(entry->key, path) ||
	    (unlinkat(store->directory_fd, path, 0) && errno != ENOENT)) {
		store_place_last(store, entry);
		return 0;
	}
	store->evicted_count++;
	store_forget_entry(store, entry->key);
	return file_bytes;
}

/* Removes least recently used objects until `bytes` are free, and more if that does not take long.
 * Called with the lock, which is released now and then. Returns the bytes that were freed. */
static uint64_t store_evict_bytes(struct store *store, uint64_t bytes, uint64_t more_bytes)
{
	static const struct timespec pause = { .tv_nsec = 100000 };
	unsigned int count = HASH_COUNT(store->entries);
	uint64_t freed = 0;

	for (unsigned int i = 0; i < count && store->entries; i++) {
		if (freed >= bytes && (freed >= bytes + more_bytes || i >= most_victims))
			break;
		freed += evict_oldest(store);
		if (i % eviction_slice == eviction_slice - 1) {
			pthread_mutex_unlock(&store->lock);
			nanosleep(&pause, NULL); /* or a waiting thread would hardly get it */
			pthread_mutex_lock(&store->lock);
		}
	}
	return freed;
}

static void tell_evicted(const struct store *store, uint64_t freed)
{
	if (freed && store->evicted)
		store->evicted(store->evicted_context);
}

/* Lock held. Nothing is known until the store has been counted. */
static uint64_t evict_excess(struct store *store)
{
	uint64_t bytes = store->used_bytes + store->room.arriving_bytes;

	return store->is_scanned && bytes > store->max_bytes
		       ? store_evict_bytes(store, bytes - store->max_bytes, 0)
		       : 0;
}

void store_scan(struct store *store, const bool *stop)
{
	char name[16];
	unsigned int i;
	uint64_t freed;

	for (i = 0; i < 256 && !__atomic_load_n(stop, __ATOMIC_RELAXED); i++) {
		snprintf(name, sizeof(name), "objects/%02x", i);
		scan_shelf(store, name);
	}
	pthread_mutex_lock(&store->lock);
	HASH_SORT(store->entries, by_use);
	store->is_scanned = true;
	freed = evict_excess(store);
	pthread_mutex_unlock(&store->lock);
	tell_evicted(store, freed);
}

void store_set_max(struct store *store, uint64_t max_bytes)
{
	uint64_t freed;

	pthread_mutex_lock(&store->lock);
	store->max_bytes = max_bytes;
	freed = evict_excess(store);
	pthread_mutex_unlock(&store->lock);
	tell_evicted(store, freed);
}

/*
 * Counts this many more bytes as arriving, and makes room for them. When there cannot be room,
 * nothing is evicted. A record (`must`) does not wait: it is small, and its content has arrived.
 */
static int store_reserve_bytes(struct store_incoming *incoming, uint64_t bytes, bool must)
{
	struct store *store = incoming->store;
	struct store_quota *room = &store->room;
	uint64_t wanted, freed = 0;
	int failure = 0;
	bool fits;

	pthread_mutex_lock(&store->lock);
	fits = store_quota_is_turn(room, &incoming->share) &&
	       room->arriving_bytes + bytes <= store->max_bytes;
	wanted = store->used_bytes + room->arriving_bytes + bytes;
	if (fits && wanted > store->max_bytes) {
		freed = store_evict_bytes(store, wanted - store->max_bytes,
					  store->max_bytes / eviction_share);
		fits = store->used_bytes + room->arriving_bytes + bytes <= store->max_bytes;
	}
	if (!fits)
		failure = store_quota_wait(room, &incoming->share);
	if (must && (failure == -EAGAIN || failure == -EDEADLK))
		failure = 0;
	if (!failure)
		store_quota_take(room, &incoming->share, bytes);
	pthread_mutex_unlock(&store->lock);
	tell_evicted(store, freed);
	return failure;
}

static void store_unreserve_bytes(struct store_incoming *incoming)
{
	struct store *store = incoming->store;

	pthread_mutex_lock(&store->lock);
	store_quota_leave(&store->room, &incoming->share);
	pthread_mutex_unlock(&store->lock);
}

/* ---- finding ---- */

static void drop_corrupt(struct store *store, const char *key, const char *path)
{
	pthread_mutex_lock(&store->lock);
	unlinkat(store->directory_fd, path, 0);
	store->corrupt_count++;
	store_forget_entry(store, key);
	pthread_mutex_unlock(&store->lock);
}

static bool was_checked(struct store *store, const char *key)
{
	struct store_entry *entry;
	bool is_checked;

	pthread_mutex_lock(&store->lock);
	HASH_FIND_STR(store->entries, key, entry);
	is_checked = entry && entry->is_checked;
	pthread_mutex_unlock(&store->lock);
	return is_checked;
}

int store_find(struct store *store, const char *key, int *fd_ret, struct store_record *record)
{
	return store_find_quickly(store, key, UINT64_MAX, fd_ret, record);
}

int store_find_quickly(struct store *store, const char *key, uint64_t most_bytes, int *fd_ret,
		       struct store_record *record)
{
	char path[STORE_OBJECT_PATH_BYTES];
	struct store_record found = { 0 };
	int fd AUTO_CLOSE = -1;
	struct stat status;
	int failure = store_object_path(key, path);

	if (failure)
		return failure;
	fd = openat(store->directory_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &status))
		return -errno;
	failure = store_file_read(fd, (uint64_t)status.st_size, &found);
	if (!failure && strcmp(found.key, key) != 0)
		failure = -EBADMSG;
	if (!failure && !was_checked(store, key))
		failure = found.size_bytes > most_bytes ? -EAGAIN : store_file_verify(fd, &found);
	if (failure) {
		store_record_deinit(&found);
		if (failure != -EBADMSG && failure != -EIO)
			return failure;
		drop_corrupt(store, key, path);
		return -ENOENT;
	}
	futimens(fd, NULL);
	pthread_mutex_lock(&store->lock);
	store_enter(store, &found, (uint64_t)status.st_size, true);
	pthread_mutex_unlock(&store->lock);
	*record = found;
	*fd_ret = steal_fd(&fd);
	return 0;
}

void store_touch(struct store *store, const char *key)
{
	char path[STORE_OBJECT_PATH_BYTES];
	struct store_entry *entry;
	int64_t now_s = time(NULL);
	bool is_due = false;

	pthread_mutex_lock(&store->lock);
	HASH_FIND_STR(store->entries, key, entry);
	if (entry) {
		is_due = now_s - entry->touched_s >= touch_interval_s;
		if (is_due)
			entry->touched_s = now_s;
		store_place_last(store, entry);
	}
	pthread_mutex_unlock(&store->lock);
	if (is_due && !store_object_path(key, path))
		utimensat(store->directory_fd, path, NULL, AT_SYMLINK_NOFOLLOW);
}

/* ---- arrivals ---- */

int store_begin(struct store *store, struct store_incoming **ret)
{
	struct store_incoming *incoming = calloc(1, sizeof(*incoming));

	if (!incoming)
		return -ENOMEM;
	incoming->store = store;
	pthread_mutex_lock(&store->lock);
	snprintf(incoming->path, sizeof(incoming->path), "tmp/" STORE_ARRIVAL_PREFIX "%llu",
		 (unsigned long long)store->next_incoming++);
	pthread_mutex_unlock(&store->lock);
	incoming->fd = openat(store->directory_fd, incoming->path,
			      O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (incoming->fd < 0) {
		int failure = -errno;

		free(incoming);
		return failure;
	}
	*ret = incoming;
	return 0;
}

/* Writes at the end; when the disk is full, evicts the oldest objects once. */
static int write_out(struct store_incoming *incoming, const void *bytes, size_t count)
{
	struct store *store = incoming->store;
	int failure = path_write_all(incoming->fd, bytes, count);
	uint64_t freed;

	if (failure == -EFBIG)
		return -ENOSPC; /* a larger file than the process or the file system allows */
	if (failure != -ENOSPC && failure != -EDQUOT)
		return failure;
	pthread_mutex_lock(&store->lock);
	freed = store_evict_bytes(store, count, store->used_bytes / eviction_share);
	pthread_mutex_unlock(&store->lock);
	tell_evicted(store, freed);
	if (freed < count || lseek(incoming->fd, (off_t)incoming->bytes, SEEK_SET) < 0)
		return -ENOSPC;
	failure = path_write_all(incoming->fd, bytes, count);
	return failure == -EDQUOT || failure == -EFBIG ? -ENOSPC : failure;
}

/* An arrival of unknown length may evict at most half of the store. */
static uint64_t most_bytes(struct store *store, bool is_expected)
{
	uint64_t max_bytes;

	pthread_mutex_lock(&store->lock);
	max_bytes = store->max_bytes;
	pthread_mutex_unlock(&store->lock);
	return is_expected ? max_bytes - max_bytes / eviction_share : max_bytes / 2;
}

int store_reserve(struct store_incoming *incoming, uint64_t bytes)
{
	struct store_usage usage;
	int failure = 0;

	store_usage(incoming->store, &usage);
	if (bytes > most_bytes(incoming->store, true) ||
	    bytes > usage.used_bytes + usage.arriving_bytes + usage.free_bytes)
		return -ENOSPC;
	if (bytes > incoming->share.bytes)
		failure = store_reserve_bytes(incoming, bytes - incoming->share.bytes, false);
	incoming->is_expected |= !failure;
	return failure;
}

static int store_append_bytes(struct store_incoming *incoming, const void *bytes, size_t count,
			      bool is_record)
{
	uint64_t wanted = incoming->bytes + count;
	int failure = 0;

	if (wanted > incoming->share.bytes)
		failure = store_reserve_bytes(incoming, wanted - incoming->share.bytes, is_record);
	if (failure)
		return failure;
	failure = write_out(incoming, bytes, count);
	if (!failure)
		incoming->bytes += count;
	return failure;
}

int store_append(struct store_incoming *incoming, const void *bytes, size_t count)
{
	if (incoming->bytes + count > most_bytes(incoming->store, incoming->is_expected))
		return -ENOSPC;
	return store_append_bytes(incoming, bytes, count, false);
}

int store_restart(struct store_incoming *incoming)
{
	if (ftruncate(incoming->fd, 0) || lseek(incoming->fd, 0, SEEK_SET) < 0)
		return -errno;
	store_unreserve_bytes(incoming);
	incoming->bytes = 0;
	incoming->is_expected = false;
	return 0;
}

int store_incoming_fd(const struct store_incoming *incoming)
{
	return incoming->fd;
}

uint64_t store_incoming_bytes(const struct store_incoming *incoming)
{
	return incoming->bytes;
}

/* From now on it counts as an object. */
static void store_release_bytes(const struct store_incoming *incoming)
{
	struct store *store = incoming->store;
	struct store_entry *entry;

	if (!incoming->key)
		return;
	pthread_mutex_lock(&store->lock);
	HASH_FIND_STR(store->entries, incoming->key, entry);
	if (entry && entry->holder == incoming)
		store_unpin(store, entry);
	pthread_mutex_unlock(&store->lock);
}

void store_abandon(struct store_incoming *incoming)
{
	if (!incoming)
		return;
	store_release_bytes(incoming);
	unlinkat(incoming->store->directory_fd, incoming->path, 0);
	store_unreserve_bytes(incoming);
	close(incoming->fd);
	free(incoming->key);
	free(incoming);
}

/* The client may not have opened it yet. Lock held. */
static void store_hold(struct store_incoming *incoming, struct store_entry *entry)
{
	incoming->key = entry ? strdup(entry->key) : NULL;
	if (!incoming->key)
		return;
	store_unpin(incoming->store, entry);
	incoming->store->used_bytes -= entry->file_bytes;
	entry->holder = incoming;
}

/* The record is written behind the content, everything is flushed to the disk, and only then it
 * gets its name. It is compared under the lock, so the order of arrivals does not matter. */
static int store_publish_object(struct store_incoming *incoming, struct store_record *record)
{
	struct store *store = incoming->store;
	char path[STORE_OBJECT_PATH_BYTES];
	struct buf text;
	int failure = store_object_path(record->key, path);

	if (failure)
		return failure;
	buf_init(&text, 32 << 10);
	failure = store_file_format(&text, record)
			  ? store_append_bytes(incoming, text.data, text.size_bytes, true)
			  : -ENOMEM;
	buf_deinit(&text);
	if (failure)
		return failure;
	if (fsync(incoming->fd))
		return -errno;
	pthread_mutex_lock(&store->lock);
	failure = store_file_is_better(store->directory_fd, path, record)
			  ? -EEXIST
			  : store_layout_move(store->directory_fd, incoming->path, path);
	if (!failure)
		store_hold(incoming, store_enter(store, record, incoming->bytes, true));
	pthread_mutex_unlock(&store->lock);
	return failure ? failure : store_layout_sync(store->directory_fd, path);
}

int store_publish_held(struct store_incoming *incoming, struct store_record *record)
{
	uint8_t digest[32];
	int failure;

	record->size_bytes = incoming->bytes;
	record->fetched_s = time(NULL);
	failure = digest_file(incoming->fd, incoming->bytes, sizeof(digest), digest);
	hex_write_bytes(record->sha256, digest, sizeof(digest));
	return failure ? failure : store_publish_object(incoming, record);
}

int store_unwrap(struct store_incoming *incoming, const char *key, struct store_record *record)
{
	int failure = store_file_unwrap(incoming->fd, incoming->bytes, key, record);

	if (!failure)
		incoming->bytes = record->size_bytes;
	return failure;
}

int store_publish(struct store_incoming *incoming, struct store_record *record)
{
	int failure = store_publish_held(incoming, record);

	store_abandon(incoming);
	return failure;
}
