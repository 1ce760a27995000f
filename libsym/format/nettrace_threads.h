/* SPDX-License-Identifier: MIT */
/*
 * What is missing from a nettrace stream. The runtime counts the events of each thread, from 1, and
 * goes on counting where it has no room for one. At a sequence point it says how far each thread
 * has come; those that it does not name have ended.
 *
 *	SPBlock: u64 time, u32 count, each u64 thread, u32 number of its last event
 */
#ifndef LIBSYM_FORMAT_NETTRACE_THREADS_H
#define LIBSYM_FORMAT_NETTRACE_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"

struct nettrace_thread;

struct nettrace_threads {
	struct nettrace_thread *table; /* by id */
	struct nettrace_thread *last;  /* of the event before */
	uint64_t gaps;                 /* places where events are missing */
};

void nettrace_threads_deinit(struct nettrace_threads *threads);

/* An event of a thread with its number. False when there is no memory. */
bool nettrace_threads_event(struct nettrace_threads *threads, uint64_t id, uint32_t event_number);

/* A sequence point, by the content of its block. False when there is no memory; what is malformed
 * fails the reader. */
bool nettrace_threads_point(struct nettrace_threads *threads, struct reader *block);

#endif
