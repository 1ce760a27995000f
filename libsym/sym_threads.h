/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: the threads of a process, with their registers and a copy of their stacks.
 *
 * Pass them to sym_unwinder_unwind().
 */
#ifndef LIBSYM_SYM_THREADS_H
#define LIBSYM_SYM_THREADS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"
#include "libsym/sym_unwind.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sym_snapshot;

/** One thread at one moment. */
struct sym_thread {
	int32_t tid;   /**< as the caller counts processes */
	char state;    /**< as in /proc/PID/stat: R, S, D, T, Z...; '?' when unknown */
	char name[19]; /**< "" when unknown, as in a core file */
	struct sym_unwind_registers registers; /**< `known` is 0 where `reason` is not NULL */
	struct sym_unwind_stack stack;         /**< bytes belong to the list */
	uint64_t held_ns;   /**< how long the thread was stopped; 0 in a core file */
	const char *reason; /**< why there are no registers; static; NULL when there are */
};

/** The threads of one process, sorted by tid. Immutable. */
struct sym_threads;

/**
 * Reads registers and stacks of all threads of a live process or a core file.
 *
 * A live thread is stopped by ptrace(), read, and resumed before the next one is stopped.
 * So the stacks are of slightly different moments.
 * A stop takes some 50 us.
 * Some system calls of a stopped thread return EINTR, as after SIGSTOP and SIGCONT: see signal(7).
 * The function waits up to 1 s, in all, for threads in uninterruptible sleep.
 * A thread that does not leave it has a `reason`.
 * The caller gets a SIGCHLD for each stop if it handles that signal.
 *
 * @param snapshot  Of a live process or a core file; borrowed during the call.
 * @param max_stack_bytes  Most bytes copied of each stack; 0: 1 MiB.
 * @param ret  The list; free it with sym_threads_destroy().
 *
 * Errors: PERMISSION when ptrace() is not permitted; NOT_FOUND when the process has ended;
 * UNSUPPORTED for a recorded process tree.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_threads_capture(struct sym_snapshot *snapshot,
							     size_t max_stack_bytes,
							     struct sym_threads **ret);

/**
 * Frees a list of threads.
 *
 * @param threads  NULL is accepted.
 */
SYM_API void sym_threads_destroy(struct sym_threads *threads);

/** Returns the number of threads. */
SYM_API size_t sym_threads_count(const struct sym_threads *threads);

/**
 * Returns a thread by its index.
 *
 * @param index  From 0.
 * @return It lives as long as the list; NULL beyond the end.
 */
SYM_API const struct sym_thread *sym_threads_at(const struct sym_threads *threads, size_t index);

#ifdef __cplusplus
}
#endif

#endif
