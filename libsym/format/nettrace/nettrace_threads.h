/* SPDX-License-Identifier: MIT */
/*
 * Finds events that are missing from a nettrace stream. The runtime numbers the events of each
 * thread from 1, and also counts events that it drops. A sequence point lists the last event number
 * of each thread. A thread that it does not list has ended.
 *
 * In version 6 the stream numbers its threads; ThreadBlocks have the pid and the tid of each
 * number.
 *
 *   SPBlock: u64 time, u32 count, then for each thread: u64 thread id, u32 number of its last event
 */
#ifndef LIBSYM_FORMAT_NETTRACE_NETTRACE_THREADS_H
#define LIBSYM_FORMAT_NETTRACE_NETTRACE_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"

struct nettrace_thread;

struct nettrace_threads {
	struct nettrace_thread *table; /* by id */
	struct nettrace_thread *last;  /* thread of the previous event */
	uint64_t gaps;                 /* how often events are missing */
};

void nettrace_threads_deinit(struct nettrace_threads *threads);

/* Records an event of a thread. Returns false if out of memory. */
bool nettrace_threads_event(struct nettrace_threads *threads, uint64_t id, uint32_t event_number);

/* Reads the content of a sequence point's block. Returns false if out of memory; malformed content
 * fails the reader. */
bool nettrace_threads_point(struct nettrace_threads *threads, struct reader *block);

/*
 * Version 6. ThreadBlock: rows: u16 size, varint number, options: u8 kind, content. A sequence
 * point lists some threads: varint number of the thread, varint number of its last event.
 */
bool nettrace_threads_add_v6(struct nettrace_threads *threads, struct reader block);
void nettrace_threads_remove_v6(struct nettrace_threads *threads, struct reader block);
void nettrace_threads_point_v6(struct nettrace_threads *threads, struct reader *block,
			       bool forgets_all);
/* Leaves both as they are if the thread is not known. */
void nettrace_threads_identity(const struct nettrace_threads *threads, uint64_t number,
			       int32_t *pid_ret, uint64_t *tid_ret);

#endif
