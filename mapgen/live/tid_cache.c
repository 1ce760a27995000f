/* SPDX-License-Identifier: MIT */
#include "mapgen/live/tid_cache.h"

#include <stdlib.h>

#include "libsym/base/hash.h"
#include "mapgen/cli/monotonic.h"
#include "mapgen/cli/target.h"

enum {
	MOST_THREADS = 16384 /* looked up lately */
};

static const double memory_s = 1;

struct tid_cache_entry {
	int32_t tid;
	int32_t pid; /* 0: there is no such thread */
	double read_s;
	UT_hash_handle hh;
};

void tid_cache_deinit(struct tid_cache *threads)
{
	HASH_DESTROY(threads->items, free);
}

/* NULL: out of memory. */
static struct tid_cache_entry *tid_cache_add(struct tid_cache *threads, int32_t tid)
{
	struct tid_cache_entry *thread;

	if (HASH_COUNT(threads->items) >= MOST_THREADS)
		tid_cache_deinit(threads);
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->tid = tid;
	HASH_ADD(hh, threads->items, tid, sizeof(tid), thread);
	if (hash_added(thread))
		return thread;
	free(thread);
	return NULL;
}

int32_t tid_cache_process(struct tid_cache *threads, int32_t tid)
{
	struct tid_cache_entry *thread;

	HASH_FIND(hh, threads->items, &tid, sizeof(tid), thread);
	if (thread && monotonic_seconds() - thread->read_s < memory_s)
		return thread->pid;
	if (!thread)
		thread = tid_cache_add(threads, tid);
	if (!thread)
		return 0;
	thread->pid = target_of_thread(tid, threads->root);
	thread->read_s = monotonic_seconds();
	return thread->pid;
}
