/* SPDX-License-Identifier: MIT */
/*
 * The files named like a perf map that a live process holds open for writing: its
 * own, and one with another's number, with which it goes on after a fork() (forked.h).
 * The name is what it was opened as, also where the file was put aside or removed since.
 */
#ifndef LIBSYM_PERF_MAP_WRITER_H
#define LIBSYM_PERF_MAP_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libsym/error.h"
#include "libsym/process.h"

/* How files of one kind are called: `start`, the id of the process, `end`; and `aside` behind that
 * where another one was put in its place. */
struct perf_map_naming {
	const char *start, *end, *aside;
};

/* One map, opened for reading. */
struct perf_map_file {
	int fd;     /* -1 when there is none */
	char *path; /* for the caller to open or to show; heap */
	struct stat status;
};

void perf_map_file_close(struct perf_map_file *file);

struct perf_map_writer {
	int32_t namespace_pid; /* in the name of the file; 0 when there is none */
	int32_t descriptor;    /* -1 when there is none */
	struct stat status;
};

struct perf_map_writers {
	struct perf_map_writer own; /* of several, one that still has a name; else the first */
	struct perf_map_writer other;
	char *own_directory; /* as the process names it, heap; NULL without one */
};

/* Is this the file that it writes? */
bool perf_map_writer_has(const struct perf_map_writer *writer, const struct stat *status);

/*
 * Of a recorded process there are none: its links lead out of the
 * tree. Errors: NO_MEMORY, and PERMISSION or NOT_FOUND where its descriptors may not be looked at
 * or it is gone. _deinit() on success only.
 */
struct sym_error *perf_map_writers_find(const struct process *process,
					const struct perf_map_naming *naming,
					struct perf_map_writers *ret)
	__attribute__((warn_unused_result));
void perf_map_writers_deinit(struct perf_map_writers *writers);

/* The file behind the descriptor of the process; its path leads there too. STALE: the descriptor is
 * another file's now. _close() on success only. */
struct sym_error *perf_map_writer_open(const struct process *process,
				       const struct perf_map_writer *writer,
				       struct perf_map_file *ret)
	__attribute__((warn_unused_result));

#endif
