/* SPDX-License-Identifier: MIT */
/*
 * The output of perf record --threads: a directory with a perf.data named `data` and, for each
 * thread of perf, a file `data.N` of records without a header. Makes one perf.data of them. The
 * records of the parts stand one part after the other, so they are in no order of time.
 */
#ifndef MAPGEN_PERFDATA_PERF_DIRECTORY_H
#define MAPGEN_PERFDATA_PERF_DIRECTORY_H

#include "libsym/libsym.h"

/*
 * Writes to the empty file `output_fd`. Compressed records are expanded. `path` is the directory's
 * name for messages. Errors: NOT_FOUND (no `data` in it), FORMAT, IO, NO_MEMORY.
 */
struct sym_error *perf_directory_join(int directory_fd, const char *path, int output_fd)
	__attribute__((warn_unused_result));

#endif
