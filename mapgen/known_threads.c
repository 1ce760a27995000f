/* SPDX-License-Identifier: MIT */
#include "mapgen/known_threads.h"

#include <stdlib.h>

#include "libsym/base/hash.h"
#include "mapgen/seconds.h"
#include "mapgen/target.h"

enum {
	MOST_THREADS = 16384 /* remembered at once */
};

static const double memory_s = 1;

struct known_thread {
	int32_t tid;
	int32_t pid; /* 0: it was not there */
	double read_s;
	UT_hash_handle hh;
};

void known_threads_deinit(struct known_threads *threads)
{
	struct known_thread *thread, *next;

	HASH_ITER(hh, threads->items, thread, next)
	{
		HASH_DEL(threads->items, thread);
		free(thread);
	}
}

/* NULL for want of memory. */
static struct known_thread *add(struct known_threads *threads, int32_t tid)
{
	struct known_thread *thread;

	if (HASH_COUNT(threads->items) >= MOST_THREADS)
		known_threads_deinit(threads);
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

int32_t known_threads_process(struct known_threads *threads, int32_t tid)
{
	struct known_thread *thread;

	HASH_FIND(hh, threads->items, &tid, sizeof(tid), thread);
	if (thread && seconds_now() - thread->read_s < memory_s)
		return thread->pid;
	if (!thread)
		thread = add(threads, tid);
	if (!thread)
		return 0;
	thread->pid = target_of_thread(tid, threads->root);
	thread->read_s = seconds_now();
	return thread->pid;
}
