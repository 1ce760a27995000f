/* SPDX-License-Identifier: MIT */
/*
 * Files named like a perf map that a live process holds open for writing: its own, and one with
 * another PID in its name, inherited across fork() (inherited_file.h).
 * The name is the one at opening time, even if the file was renamed or removed since.
 */
#ifndef LIBSYM_PERF_PERFMAP_DESCRIPTORS_H
#define LIBSYM_PERF_PERFMAP_DESCRIPTORS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libsym/error.h"
#include "libsym/process/process.h"

/*
 * The file names of one kind: `start`, the PID, `end`; then `aside` if another file was put in its
 * place.
 */
struct perf_map_naming {
	const char *start, *end, *aside;
};

/* One map, opened for reading. */
struct perfmap_file {
	int fd;     /* -1 when there is none */
	char *path; /* valid for the caller; from malloc() */
	struct stat status;
};

void perfmap_file_close(struct perfmap_file *file);

struct perfmap_descriptor {
	int32_t namespace_pid; /* in the name of the file; 0 when there is none */
	int32_t descriptor;    /* -1 when there is none */
	struct stat status;
};

struct perfmap_descriptors {
	struct perfmap_descriptor
		own; /* of several the one that still has a name; else the first */
	struct perfmap_descriptor other;
	char *own_directory; /* as the process names it, from malloc(); NULL without one */
};

/* True when the process writes to this file. */
bool perfmap_descriptor_has(const struct perfmap_descriptor *writer, const struct stat *status);

/*
 * Finds the descriptors. A recorded process has none: its links lead out of the tree.
 * Call _deinit() on success only.
 * Errors: PERMISSION; NOT_FOUND when the process is gone; others when a descriptor could not be
 * read, because it may be the one.
 */
struct sym_error *perfmap_descriptors_find(const struct process *process,
					   const struct perf_map_naming *naming,
					   struct perfmap_descriptors *ret)
	__attribute__((warn_unused_result));
void perfmap_descriptors_deinit(struct perfmap_descriptors *writers);

/*
 * Opens the file behind a descriptor of the process, also for its path. Call _close() on success
 * only.
 * Errors: STALE when the descriptor is of another file now.
 */
struct sym_error *perfmap_descriptor_open(const struct process *process,
					  const struct perfmap_descriptor *writer,
					  struct perfmap_file *ret)
	__attribute__((warn_unused_result));

#endif
