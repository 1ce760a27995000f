/* SPDX-License-Identifier: MIT */
/*
 * The sources of names for a recorded process: the process itself while it lives, the files that it
 * had mapped, and the perf map that it left. Each is used only if it is what was recorded.
 */
#ifndef MAPGEN_PERFDATA_RECORDED_ORIGIN_H
#define MAPGEN_PERFDATA_RECORDED_ORIGIN_H

#include "libsym/libsym.h"
#include "mapgen/cli/options.h"
#include "mapgen/perfdata/recorded_maps.h"

enum mapping_class {
	MAPPING_OTHER, /* [vdso], [stack], ... */
	MAPPING_FILE,
	MAPPING_CODE, /* memory of no file, or the double mapping of a runtime */
};

enum mapping_class mapping_class_of(const char *name);

/* The process with this PID now. */
struct sym_error *fixup_open_snapshot(const struct options *options, int32_t pid,
				      struct sym_snapshot **ret)
	__attribute__((warn_unused_result));

/* Whether the live process is the recorded one, by its mappings. */
bool fixup_is_the_recorded(const struct recorded_mapping *mappings, size_t count,
			   const struct sym_snapshot *snapshot);

/* The first mapping of the process that is the recorded one; NULL: there is none, or other code is
 * mapped there too. */
const struct sym_mapping *fixup_find_now(const struct sym_snapshot *snapshot,
					 const struct recorded_mapping *recorded);

/* Is there no file where the one of a mapping was? */
bool fixup_is_missing(const struct options *options, const struct recorded_mapping *mapping);

/*
 * Checks the file of a mapping: it has the recorded device and inode, and was not written after
 * `recorded_until` (seconds since 1970).
 */
struct sym_error *fixup_open_file(const struct options *options, int64_t recorded_until,
				  const struct recorded_mapping *mapping, struct sym_image **ret);

/*
 * The perf map that a process left: its addresses lie in the executable mappings of the process,
 * all of which are given. NULL when there is none that may be used.
 */
struct sym_symbols *fixup_open_saved_map(const struct options *options,
					 struct recorded_mapping *mappings, size_t count);

#endif
