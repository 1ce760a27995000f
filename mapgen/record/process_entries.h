/* SPDX-License-Identifier: MIT */
/* The processes of a recording, by their number. */
#ifndef MAPGEN_RECORD_PROCESS_ENTRIES_H
#define MAPGEN_RECORD_PROCESS_ENTRIES_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/hash.h"
#include "mapgen/record/recorded_process.h"

struct process_entry {
	UT_hash_handle hh;
	int32_t pid;
	struct recorded_process *process; /* NULL: it could not be opened */
	bool is_wanted;                   /* one that was asked for, or its child */
	int32_t parent_pid; /* it was forked, and has not called exec() since; 0 else */
	bool has_ended;
	bool was_other; /* another program, or another process of this number */
};

void process_entries_destroy(struct process_entry *entries);

/* NULL: there is none. */
struct process_entry *process_entries_find(const struct process_entry *entries, int32_t pid);
/* Adds an empty entry, unless there is one. Errors: NO_MEMORY. */
struct sym_error *process_entries_add(struct process_entry **entries, int32_t pid,
				      struct process_entry **ret)
	__attribute__((warn_unused_result));

/* False: the record is of a process that is not wanted. */
bool process_entries_want(const struct process_entry *entries,
			  const struct perf_event_header *record);

#endif
