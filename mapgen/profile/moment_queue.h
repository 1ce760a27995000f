/* SPDX-License-Identifier: MIT */
/*
 * Puts what records say into the order of time. Each processor has its own buffer, so records of
 * two are in no order; but what stands behind the second FINISHED_ROUND from here is not older than
 * the newest of what stands before the first (tools/perf/util/ordered-events.c). A stream without
 * rounds is put in order in pieces.
 */
#ifndef MAPGEN_PROFILE_MOMENT_QUEUE_H
#define MAPGEN_PROFILE_MOMENT_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

enum moment_kind {
	MOMENT_SAMPLE,
	MOMENT_SWITCH_OUT, /* the thread leaves the processor */
	MOMENT_SWITCH_IN,
	MOMENT_COMM,
	MOMENT_FORK,
	MOMENT_EXIT,
};

struct moment {
	uint64_t time_ns; /* 0: before all that was recorded, or no times at all */
	uint32_t number;  /* in the order of the input */
	uint16_t kind;    /* enum moment_kind */
	uint16_t event;   /* of a sample: index in the input */
	int32_t pid, tid;
	union {
		struct {
			uint64_t period;
			uint32_t stack; /* raw_stacks.h */
		};
		struct {
			int32_t parent_pid, parent_tid;
		};
		struct {
			char comm[16];
		};
	};
	bool flag; /* SWITCH_OUT: preempted; COMM: of an exec() */
};

struct moment_queue {
	struct moment *items;
	size_t count, capacity;
	uint64_t newest_ns, round_ns; /* of all; of those before the last round */
	uint32_t next_number;
	bool keeps_all; /* rounds mean nothing in the input: all wait for moment_queue_finish() */
	/* Gets them in order. */
	struct sym_error *(*take)(void *context, const struct moment *moment);
	void *context;
};

void moment_queue_deinit(struct moment_queue *queue);
struct sym_error *moment_queue_add(struct moment_queue *queue, const struct moment *moment)
	__attribute__((warn_unused_result));
struct sym_error *moment_queue_end_round(struct moment_queue *queue)
	__attribute__((warn_unused_result));
struct sym_error *moment_queue_finish(struct moment_queue *queue)
	__attribute__((warn_unused_result));

#endif
