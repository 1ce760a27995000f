/* SPDX-License-Identifier: MIT */
#include "libsym/format/nettrace/nettrace_threads.h"

#include <stdlib.h>

#include "libsym/base/hash.h"
#include "libsym/base/leb.h"
#include "libsym/format/nettrace/nettrace_text.h"

enum {
	MAX_THREADS = 1 << 16 /* threads that write in one session; a real process has fewer */
};

enum thread_option {
	OPTION_NAME = 1,
	OPTION_PROCESS = 2,
	OPTION_THREAD = 3,
	OPTION_KEY_VALUE = 4,
};

struct nettrace_thread {
	uint64_t id;
	uint32_t event_number; /* number of its last event; 0: none */
	bool has_identity;     /* version 6: pid and tid are known */
	int32_t pid;
	uint64_t tid;
	UT_hash_handle hh;
};

static void nettrace_threads_clear(struct nettrace_thread **table)
{
	HASH_DESTROY(*table, free);
}

void nettrace_threads_deinit(struct nettrace_threads *threads)
{
	nettrace_threads_clear(&threads->table);
	*threads = (struct nettrace_threads){ 0 };
}

static struct nettrace_thread *nettrace_threads_find(struct nettrace_thread *table, uint64_t id)
{
	struct nettrace_thread *thread;

	HASH_FIND(hh, table, &id, sizeof(id), thread);
	return thread;
}

/* NULL if out of memory. */
static struct nettrace_thread *nettrace_threads_find_or_add(struct nettrace_thread **table,
							    uint64_t id)
{
	struct nettrace_thread *thread = nettrace_threads_find(*table, id);

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
		/* After that, the next event of each thread counts as a gap. */
		if (HASH_COUNT(threads->table) >= MAX_THREADS)
			nettrace_threads_clear(&threads->table);
		threads->last = thread = nettrace_threads_find_or_add(&threads->table, id);
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
		struct nettrace_thread *before = nettrace_threads_find(threads->table, id), *thread;
		uint32_t seen = before ? before->event_number : 0;

		if (!reader_ok(block))
			break;
		thread = nettrace_threads_find_or_add(&now, id);
		fits = thread != NULL;
		if ((int32_t)(event_number - seen) > 0)
			threads->gaps++;
		else
			event_number = seen; /* the thread has written more since */
		if (thread)
			thread->event_number = event_number;
	}
	nettrace_threads_clear(&threads->table);
	threads->table = now;
	threads->last = NULL;
	return fits;
}

/* ---- version 6 ------------------------------------------------------------------------------- */

static void read_options(struct reader *row, struct nettrace_thread *thread)
{
	while (reader_left(row)) {
		switch ((enum thread_option)reader_u8(row)) {
		case OPTION_NAME:
			nettrace_skip_text8(row);
			break;
		case OPTION_PROCESS:
			thread->pid = (int32_t)leb_unsigned(row);
			break;
		case OPTION_THREAD:
			thread->tid = leb_unsigned(row);
			thread->has_identity = true;
			break;
		case OPTION_KEY_VALUE:
			nettrace_skip_text8(row);
			nettrace_skip_text8(row);
			break;
		default:
			return; /* of a later version; its length is not known */
		}
	}
}

bool nettrace_threads_add_v6(struct nettrace_threads *threads, struct reader block)
{
	while (reader_left(&block)) {
		uint16_t size_bytes = reader_u16(&block);
		struct reader row = reader_part(&block, block.position, size_bytes);
		uint64_t number = leb_unsigned(&row);
		struct nettrace_thread *thread;

		reader_skip(&block, size_bytes);
		if (!reader_ok(&row) || HASH_COUNT(threads->table) >= MAX_THREADS)
			break;
		thread = nettrace_threads_find_or_add(&threads->table, number);
		if (!thread)
			return false;
		thread->event_number = 0;
		read_options(&row, thread);
	}
	return true;
}

static void note_last(struct nettrace_threads *threads, struct nettrace_thread *thread,
		      uint32_t event_number)
{
	if ((int32_t)(event_number - thread->event_number) <= 0)
		return; /* the thread has written more since */
	threads->gaps++;
	thread->event_number = event_number;
}

void nettrace_threads_remove_v6(struct nettrace_threads *threads, struct reader block)
{
	while (reader_left(&block)) {
		uint64_t number = leb_unsigned(&block);
		uint32_t event_number = (uint32_t)leb_unsigned(&block);
		struct nettrace_thread *thread = nettrace_threads_find(threads->table, number);

		if (!reader_ok(&block) || !thread)
			continue;
		note_last(threads, thread, event_number);
		HASH_DEL(threads->table, thread);
		free(thread);
	}
	threads->last = NULL;
}

void nettrace_threads_point_v6(struct nettrace_threads *threads, struct reader *block,
			       bool forgets_all)
{
	uint32_t count = reader_u32(block);

	for (uint32_t i = 0; i < count && reader_left(block); i++) {
		uint64_t number = leb_unsigned(block);
		uint32_t event_number = (uint32_t)leb_unsigned(block);
		struct nettrace_thread *thread = nettrace_threads_find(threads->table, number);

		if (reader_ok(block) && thread)
			note_last(threads, thread, event_number);
	}
	if (forgets_all)
		nettrace_threads_clear(&threads->table);
	threads->last = NULL;
}

void nettrace_threads_identity(const struct nettrace_threads *threads, uint64_t number,
			       int32_t *pid_ret, uint64_t *tid_ret)
{
	const struct nettrace_thread *thread = nettrace_threads_find(threads->table, number);

	if (!thread || !thread->has_identity)
		return;
	*pid_ret = thread->pid;
	*tid_ret = thread->tid;
}
