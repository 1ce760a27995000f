/* SPDX-License-Identifier: MIT */
#include <stdlib.h>

#include "libsym/process/thread_list.h"
#include "libsym/snapshot/snapshot.h"
#include "libsym/sym_threads.h"

DEFINE_GUARD(threads, struct sym_threads *, sym_threads_destroy)

static const size_t default_stack_bytes = (size_t)1 << 20;

static int compare_threads(const void *left, const void *right)
{
	const struct sym_thread *a = left, *b = right;

	return a->tid < b->tid ? -1 : a->tid > b->tid;
}

struct sym_error *sym_threads_capture(struct sym_snapshot *snapshot, size_t max_stack_bytes,
				      struct sym_threads **ret)
{
	struct sym_threads *list GUARDED(threads) = calloc(1, sizeof(*list));
	const struct process *process = snapshot->process;
	struct sym_error *error;

	if (!list)
		return &sym_error_no_memory;
	if (!max_stack_bytes)
		max_stack_bytes = default_stack_bytes;
	if (process->core)
		error = core_threads_read(process, snapshot->space, max_stack_bytes, list);
	else if (process->recorded)
		error = sym_error_create(SYM_ERROR_UNSUPPORTED,
					 "a recorded process has no threads to look at");
	else
		error = live_threads_read(process, snapshot->space, max_stack_bytes, list);
	if (error)
		return error;
	qsort(list->items, list->count, sizeof(*list->items), compare_threads);
	*ret = STEAL(list);
	return NULL;
}
