/* SPDX-License-Identifier: MIT */
#include "mapgen/record/present_records.h"

#include <dirent.h>
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/record/thread_id.h"

DEFINE_GUARD(snapshot, struct sym_snapshot *, sym_snapshot_close)

struct sym_error *present_records_put_threads(struct perf_writer *writer,
					      struct recorded_process *process)
{
	int32_t pid = recorded_process_pid(process);
	char path[64];
	DIR *directory GUARDED(dir) = NULL;
	const struct dirent *item;
	struct sym_error *error = NULL;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	directory = opendir(path);
	while (!error && directory && (item = readdir(directory))) {
		int32_t tid = (int32_t)strtol(item->d_name, NULL, 10);
		struct thread_id id;

		if (tid <= 0 || !thread_id_read(pid, tid, &id))
			continue;
		perf_writer_put_comm(writer, pid, tid, id.comm);
		error = recorded_process_note_thread(process, tid);
	}
	return error;
}

static struct sym_error *put_mappings(struct perf_writer *writer, struct sym_budget *budget,
				      int32_t pid)
{
	const struct sym_snapshot_opts opts = { .size = sizeof(opts), .budget = budget };
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct sym_error *error = sym_snapshot_open(pid, &opts, &snapshot);

	if (error)
		return error;
	for (size_t i = 0; i < sym_snapshot_mapping_count(snapshot); i++) {
		const struct sym_mapping *mapping = sym_snapshot_mapping_at(snapshot, i);

		if (mapping->protection & SYM_EXECUTE)
			perf_writer_put_mapping(writer, pid, mapping);
	}
	return NULL;
}

struct sym_error *present_records_put(struct perf_writer *writer, struct sym_budget *budget,
				      struct recorded_process *process)
{
	struct sym_error *error = present_records_put_threads(writer, process);

	if (!error)
		error = put_mappings(writer, budget, recorded_process_pid(process));
	return sym_error_only_no_memory(error);
}
