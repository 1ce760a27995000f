/* SPDX-License-Identifier: MIT */
/*
 * Reads NAME.trace.zip, which mapgen/record/recording_file.h describes. The archive is a foreign
 * file: the size of each member is limited, and must match the directory of the archive, as must
 * the checksum. Names of members are compared, never used as paths.
 */
#ifndef MAPGEN_PROFILE_TRACE_ARCHIVE_H
#define MAPGEN_PROFILE_TRACE_ARCHIVE_H

#include <jansson.h>

#include "libsym/libsym.h"

/* A stream of a runtime's events. */
struct trace_stream {
	int32_t pid;
	const char *runtime; /* ".NET 10.0.12"; NULL: not known; in `about` */
	int fd;              /* in a file without a name */
};

struct trace_archive {
	json_t *about; /* recording.json */
	char *symbols; /* names/symbols; heap */
	size_t symbols_bytes;
	char *stacks; /* names/stacks; heap */
	size_t stacks_bytes;
	int perf_data_fd; /* perf.data, in a file without a name; -1: not open */
	struct trace_stream *streams;
	size_t stream_count;
};

/* `fd` is a regular file. Errors: FORMAT, LIMIT, UNSUPPORTED (a newer format), IO, NO_MEMORY. */
struct sym_error *trace_archive_read(int fd, struct trace_archive *ret)
	__attribute__((warn_unused_result));
void trace_archive_deinit(struct trace_archive *archive);

#endif
