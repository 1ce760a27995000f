/* SPDX-License-Identifier: MIT */
/*
 * Where the perf map of a process is, and which file may be believed. The only
 * file that spells /tmp/perf-PID.map. Knows nothing of what is in a map.
 *
 * Places, as the process names them: DIR/perf-NSPID.map inside its own root,
 * DIR being /tmp, the TMPDIR it was started with (runtimes before 8) and its
 * DOTNET_PerfMapJitDumpPath (from 8 on; COMPlus_ too); and /tmp/perf-PID.map
 * of this machine, where tools look.
 *
 * A file there is used only if it is a regular file and no link, belongs to the
 * user of the process, to root or to the caller, is not larger than
 * LIMIT_PERF_MAP_BYTES, and was written to since the process began. A file that
 * the process itself holds open for writing needs no proof of its age.
 *
 * When ours was put in the place of the runtime's file (merge, replace), that
 * one goes on growing under another name or none; it is reached through the
 * descriptor of the runtime, or as perf-PID.map.runtime.
 *
 * Of a recorded process the descriptors are not looked at (their links lead
 * out of the tree), and "this machine" is the tree.
 */
#ifndef LIBSYM_PERF_MAP_PLACE_H
#define LIBSYM_PERF_MAP_PLACE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libsym/error.h"
#include "libsym/perf_map_writer.h"
#include "libsym/process.h"

enum {
	PERF_MAP_PLACE_FILES = 8
};

struct perf_map_place {
	/*
	 * The maps that may be believed, every check made on these very descriptors, no inode
	 * twice, in the order in which to
	 * read them: of two lines that overlap, the one read later holds. So they
	 * come by the time of their last change, and what the process is writing
	 * itself comes last, because it alone knows what became of memory that was
	 * used again.
	 */
	struct perf_map_file files[PERF_MAP_PLACE_FILES];
	size_t file_count;
	/*
	 * Its strings belong to this struct. `path` is that of the last file which
	 * lies where one looks for it, else of the last of all.
	 */
	struct sym_perf_map_info info;
	/* A map that has another one's number and that the process holds open for writing: what it
	 * goes on with after a fork() (forked.h). namespace_pid is 0 when there is none. */
	struct perf_map_writer others_map;
};

/* perf-PID.map, and what runtimes up to .NET 8 write beside it: perfinfo-PID.map. */
extern const struct perf_map_naming perf_map_naming, perfinfo_naming;

/* Looks for them. Finding none is no error: file_count is 0. `ret` is to be ended with _deinit(),
 * on success only. */
struct sym_error *perf_map_place_find(const struct process *process, struct perf_map_place *ret)
	__attribute__((warn_unused_result));
/* The same for what runtimes up to .NET 8 write beside it, perfinfo-PID.map. */
struct sym_error *perf_map_place_find_perfinfo(const struct process *process,
					       struct perf_map_place *ret)
	__attribute__((warn_unused_result));
/* Believes none of them. False for want of memory. */
bool perf_map_place_refuse(struct perf_map_place *place, const char *why)
	__attribute__((warn_unused_result));
void perf_map_place_deinit(struct perf_map_place *place);

#endif
