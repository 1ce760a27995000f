/* SPDX-License-Identifier: MIT */
/*
 * The stacks of all threads of a process at this moment, with names: what the command stack shows.
 * Captures the threads, unwinds the copies, and names the frames afterwards, so that no thread is
 * held for that.
 */
#ifndef MAPGEN_PROFILE_THREAD_STACKS_H
#define MAPGEN_PROFILE_THREAD_STACKS_H

#include "libsym/libsym.h"
#include "mapgen/profile/frame_table.h"

struct thread_stack {
	const struct sym_thread *thread;
	uint32_t stack; /* STACK_NONE: thread->reason says why there is none */
	/* As many as the stack has, innermost first; inlined functions have that of their frame. */
	struct sym_frame *found;
};

struct thread_stacks {
	struct sym_threads *threads;
	struct frame_table *frames;
	struct thread_stack *items; /* by tid */
	size_t count;
};

/*
 * `fields`: SYM_FIELD_LINES, SYM_FIELD_INLINED, or 0.
 * Errors: those of sym_threads_capture() and of naming.
 */
struct sym_error *thread_stacks_take(struct sym_snapshot *snapshot, uint32_t fields,
				     struct thread_stacks *ret) __attribute__((warn_unused_result));
void thread_stacks_deinit(struct thread_stacks *stacks);

#endif
