/* SPDX-License-Identifier: MIT */
/*
 * Processes and threads of a profile. Numbers of threads are used again, so a thread is an entry
 * of this table, and its number leads to the one that has it at the moment. A thread has the last
 * name that it was given: .NET names its threads after they have begun.
 */
#ifndef MAPGEN_PROFILE_THREAD_TABLE_H
#define MAPGEN_PROFILE_THREAD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_table.h"
#include "libsym/libsym.h"

struct profile_process {
	int32_t pid;
	char *name; /* "" when unknown */
};

struct profile_thread {
	int32_t pid, tid;
	uint32_t process; /* in the table */
	char *name;       /* "" when unknown */
};

struct thread_table {
	struct profile_process *processes;
	size_t process_count, process_capacity;
	struct profile_thread *threads;
	size_t thread_count, thread_capacity;
	struct address_table by_pid, by_tid; /* number + 1 to entry + 1 */
};

void thread_table_deinit(struct thread_table *table);

/* The thread that has this number now; a new one when there is none. Errors: NO_MEMORY, LIMIT. */
struct sym_error *thread_table_find(struct thread_table *table, int32_t pid, int32_t tid,
				    uint32_t *ret) __attribute__((warn_unused_result));

/* False: no thread has this number now. */
bool thread_table_has(const struct thread_table *table, int32_t tid, uint32_t *ret);

/* A thread was made: from now on the number is that of another thread, with its maker's name. */
struct sym_error *thread_table_fork(struct thread_table *table, int32_t pid, int32_t tid,
				    int32_t parent_pid, int32_t parent_tid)
	__attribute__((warn_unused_result));

/* A thread gets a name. `is_exec`: the process is another program from now on. */
struct sym_error *thread_table_name(struct thread_table *table, int32_t pid, int32_t tid,
				    const char *name, bool is_exec)
	__attribute__((warn_unused_result));

/* An entry of its own, which no number leads to. */
struct sym_error *thread_table_add(struct thread_table *table, int32_t pid, int32_t tid,
				   const char *process_name, const char *name, uint32_t *ret)
	__attribute__((warn_unused_result));

#endif
