/* SPDX-License-Identifier: MIT */
#include "mapgen/record/short_waits.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/hash.h"

/* Samples of all threads together. */
static const size_t most_bytes = 256 << 20;

struct held_sample {
	struct held_sample *next; /* younger */
	uint64_t time_ns;
	struct perf_event_header record; /* the whole record follows */
};

struct held_thread {
	UT_hash_handle hh;
	uint32_t tid;
	struct held_sample *oldest, *youngest;
};

struct short_waits {
	uint64_t shortest_ns;
	short_waits_take_fn *take;
	void *context;
	struct held_thread *threads;
	size_t bytes;
	uint64_t short_count;
};

struct sym_error *short_waits_create(uint64_t shortest_ns, short_waits_take_fn *take, void *context,
				     struct short_waits **ret)
{
	struct short_waits *held = calloc(1, sizeof(*held));

	if (!held)
		return &sym_error_no_memory;
	held->shortest_ns = shortest_ns;
	held->take = take;
	held->context = context;
	*ret = held;
	return NULL;
}

uint64_t short_waits_count(const struct short_waits *held)
{
	return held->short_count;
}

static void drop_oldest(struct short_waits *held, struct held_thread *thread)
{
	struct held_sample *sample = thread->oldest;

	thread->oldest = sample->next;
	if (!thread->oldest)
		thread->youngest = NULL;
	held->bytes -= sample->record.size;
	free(sample);
}

static void drop_thread(struct short_waits *held, struct held_thread *thread)
{
	while (thread->oldest)
		drop_oldest(held, thread);
	HASH_DEL(held->threads, thread);
	free(thread);
}

void short_waits_destroy(struct short_waits *held)
{
	struct held_thread *thread, *next;

	if (!held)
		return;
	HASH_ITER(hh, held->threads, thread, next)
	drop_thread(held, thread);
	free(held);
}

struct sym_error *short_waits_begin(struct short_waits *held, uint32_t tid, uint64_t time_ns,
				    const struct perf_event_header *record)
{
	struct held_thread *thread;
	struct held_sample *sample;

	if (held->bytes > most_bytes)
		return held->take(held->context, record);
	thread = hash_find_or_add(&held->threads, &tid, sizeof(tid),
				  offsetof(struct held_thread, tid), sizeof(*thread), NULL);
	sample = thread ? malloc(offsetof(struct held_sample, record) + record->size) : NULL;
	if (!sample)
		return &sym_error_no_memory;
	sample->next = NULL;
	sample->time_ns = time_ns;
	memcpy(&sample->record, record, record->size);
	if (thread->youngest)
		thread->youngest->next = sample;
	else
		thread->oldest = sample;
	thread->youngest = sample;
	held->bytes += record->size;
	return NULL;
}

/* Ends the waits that began before `time_ns`. A wait whose end is unknown, because its record was
 * lost, ended before the next one began. */
static struct sym_error *end_waits(struct short_waits *held, struct held_thread *thread,
				   uint64_t time_ns)
{
	struct sym_error *error = NULL;

	while (!error && thread->oldest && thread->oldest->time_ns < time_ns) {
		struct held_sample *sample = thread->oldest;
		uint64_t end_ns = time_ns;

		if (sample->next && sample->next->time_ns < end_ns)
			end_ns = sample->next->time_ns;
		if (end_ns - sample->time_ns >= held->shortest_ns)
			error = held->take(held->context, &sample->record);
		else
			held->short_count++;
		drop_oldest(held, thread);
	}
	return error;
}

struct sym_error *short_waits_end(struct short_waits *held, uint32_t tid, uint64_t time_ns)
{
	struct held_thread *thread;

	HASH_FIND(hh, held->threads, &tid, sizeof(tid), thread);
	return thread ? end_waits(held, thread, time_ns) : NULL;
}

struct sym_error *short_waits_finish(struct short_waits *held, uint64_t time_ns)
{
	struct held_thread *thread, *next;
	struct sym_error *error = NULL;

	HASH_ITER(hh, held->threads, thread, next)
	{
		if (!error)
			error = end_waits(held, thread, time_ns);
		drop_thread(held, thread);
	}
	return error;
}
