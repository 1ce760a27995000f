/* SPDX-License-Identifier: MIT */
/*
 * Where the perf map of a process is, and which file may be used. Only this file spells
 * /tmp/perf-PID.map. It does not read maps.
 *
 * Places, as the process names them:
 * - DIR/perf-NSPID.map inside its own root. DIR is /tmp, the TMPDIR that it was started with
 *   (runtimes before .NET 8), or its DOTNET_PerfMapJitDumpPath (from .NET 8 on; COMPlus_ too).
 * - /tmp/perf-PID.map of this machine, where tools look.
 *
 * A file there is used only if all of this is true:
 * - It is a regular file and not a link.
 * - It belongs to the user of the process, to root or to the caller.
 * - It is not larger than LIMIT_PERF_MAP_BYTES.
 * - It was written to since the process began, or the process holds it open for writing.
 * - It can be opened with the rights of the process (base/rights.h), and nothing is mounted over
 *   it. So a file that only root may read never gets into a map that others can read.
 * snapshot.c refuses one more: a map that the .NET runtime of the process does not write.
 *
 * When `merge` has replaced the runtime's file by ours, the runtime's file continues to grow under
 * another name or none.
 * It is reached through the runtime's descriptor, or as perf-PID.map.runtime.
 *
 * For a recorded process "this machine" is the tree, and descriptors are not used: their links lead
 * out of the tree.
 */
#ifndef LIBSYM_PERF_PERFMAP_LOCATION_H
#define LIBSYM_PERF_PERFMAP_LOCATION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libsym/error.h"
#include "libsym/perf/perfmap_descriptors.h"
#include "libsym/process/process.h"

enum {
	PERFMAP_LOCATION_FILES = 8
};

struct perfmap_location {
	/*
	 * The maps that may be believed, every check made on these very descriptors, no inode
	 * twice, in the order in which to
	 * read them: of two lines that overlap, the one read later holds. So they
	 * come by the time of their last change, and what the process is writing
	 * itself comes last, because it alone knows what became of memory that was
	 * used again.
	 */
	struct perfmap_file files[PERFMAP_LOCATION_FILES];
	size_t file_count;
	/*
	 * Its strings belong to this struct. `path` is the last file at a place where tools look,
	 * else the last file.
	 */
	struct sym_perf_map_info info;
	/*
	 * A map with another PID in its name that the process holds open for writing, inherited
	 * across fork() (inherited_file.h). namespace_pid is 0 when there is none.
	 */
	struct perfmap_descriptor others_map;
};

/* perf-PID.map, and perfinfo-PID.map, which runtimes up to .NET 8 write beside it. */
extern const struct perf_map_naming perf_map_naming, perfinfo_naming;

/*
 * Finds the perf maps. Finding none is not an error: file_count is 0. Call _deinit() on success
 * only.
 */
struct sym_error *perfmap_location_find(const struct process *process, struct perfmap_location *ret)
	__attribute__((warn_unused_result));
/* Finds perfinfo-PID.map as perfmap_location_find() finds perf maps. */
struct sym_error *perfmap_location_find_perfinfo(const struct process *process,
						 struct perfmap_location *ret)
	__attribute__((warn_unused_result));
/* Rejects all of them. False when out of memory. */
bool perfmap_location_refuse(struct perfmap_location *place, const char *why)
	__attribute__((warn_unused_result));
void perfmap_location_deinit(struct perfmap_location *place);

#endif
