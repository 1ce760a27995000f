/* SPDX-License-Identifier: MIT */
#include "libsym/format/nettrace_threads.h"

#include <stdlib.h>

#include "libsym/base/hash.h"

enum {
	MAX_THREADS = 1 << 16 /* that write in one session; nobody has so many */
};

struct nettrace_thread {
	uint64_t id;
	uint32_t event_number; /* of the last one; 0: none */
	UT_hash_handle hh;
};

static void clear(struct nettrace_thread **table)
{
	struct nettrace_thread *thread, *next;

	HASH_ITER(hh, *table, thread, next)
	{
		HASH_DEL(*table, thread);
		free(thread);
	}
}

void nettrace_threads_deinit(struct nettrace_threads *threads)
{
	clear(&threads->table);
	*threads = (struct nettrace_threads){ 0 };
}

static struct nettrace_thread *find(struct nettrace_thread *table, uint64_t id)
{
	struct nettrace_thread *thread;

	HASH_FIND(hh, table, &id, sizeof(id), thread);
	return thread;
}

/* NULL when there is no memory. */
static struct nettrace_thread *find_or_add(struct nettrace_thread **table, uint64_t id)
{
	struct nettrace_thread *thread = find(*table, id);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	thread->id = id;
	HASH_ADD(hh, *table, id, sizeof(id), thread);
	if (hash_added(thread))
		return thread;
	free(thread);
	return NULL;
}

bool nettrace_threads_event(struct nettrace_threads *threads, uint64_t id, uint32_t event_number)
{
	struct nettrace_thread *thread = threads->last;

	if (!thread || thread->id != id) {
		/* What they would have told is missing too. */
		if (HASH_COUNT(threads->table) >= MAX_THREADS)
			clear(&threads->table);
		threads->last = thread = find_or_add(&threads->table, id);
	}
	if (!thread)
		return false;
	if (event_number != (uint32_t)(thread->event_number + 1))
		threads->gaps++;
	thread->event_number = event_number;
	return true;
}

bool nettrace_threads_point(struct nettrace_threads *threads, struct reader *block)
{
	struct nettrace_thread *now = NULL;
	uint32_t count;
	bool fits = true;

	reader_skip(block, 8);
	count = reader_u32(block);
	if (count > MAX_THREADS)
		reader_fail(block, "too many threads");
	for (uint32_t i = 0; fits && i < count && reader_ok(block); i++) {
		uint64_t id = reader_u64(block);
		uint32_t event_number = reader_u32(block);
		struct nettrace_thread *before = find(threads->table, id), *thread;
		uint32_t seen = before ? before->event_number : 0;

		if (!reader_ok(block))
			break;
		thread = find_or_add(&now, id);
		fits = thread != NULL;
		if ((int32_t)(event_number - seen) > 0)
			threads->gaps++;
		else
			event_number = seen; /* it has written more since */
		if (thread)
			thread->event_number = event_number;
	}
	clear(&threads->table);
	threads->table = now;
	threads->last = NULL;
	return fits;
}
