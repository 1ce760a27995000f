/* SPDX-License-Identifier: MIT */
#include "mapgen/record/process_entries.h"

#include <stdlib.h>

#include "libsym/error.h"

static void entry_destroy(struct process_entry *entry)
{
	recorded_process_close(entry->process);
	free(entry);
}

void process_entries_destroy(struct process_entry *entries)
{
	HASH_DESTROY(entries, entry_destroy);
}

struct process_entry *process_entries_find(const struct process_entry *entries, int32_t pid)
{
	struct process_entry *entry;

	HASH_FIND(hh, entries, &pid, sizeof(pid), entry);
	return entry;
}

struct sym_error *process_entries_add(struct process_entry **entries, int32_t pid,
				      struct process_entry **ret)
{
	*ret = hash_find_or_add((void **)entries, &pid, sizeof(pid),
				offsetof(struct process_entry, pid), sizeof(**ret), NULL);
	return *ret ? NULL : &sym_error_no_memory;
}

static bool is_wanted(const struct process_entry *entries, uint32_t pid)
{
	const struct process_entry *entry = process_entries_find(entries, (int32_t)pid);

	return entry && entry->is_wanted;
}

bool process_entries_want(const struct process_entry *entries,
			  const struct perf_event_header *record)
{
	/* u32 pid; of FORK also u32 ppid */
	const uint32_t *fields = (const uint32_t *)(record + 1);

	switch (record->type) {
	case PERF_RECORD_FORK:
		/* The number may have been that of a process that was wanted. */
		return is_wanted(entries, fields[0]) || is_wanted(entries, fields[1]);
	case PERF_RECORD_MMAP2:
	case PERF_RECORD_COMM:
	case PERF_RECORD_EXIT:
		return is_wanted(entries, fields[0]);
	default:
		return true;
	}
}
