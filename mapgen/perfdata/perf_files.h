/* SPDX-License-Identifier: MIT */
/*
 * The output of perf-fix: a file, a directory of parts, or standard output. It is written beside
 * its place or as an unnamed file, may be changed until it is complete, and then appears at once.
 * Knows files, and that perf's directories have files `data`, `data.0`, ...; not their content.
 */
#ifndef MAPGEN_PERFDATA_PERF_FILES_H
#define MAPGEN_PERFDATA_PERF_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libsym/base/path.h"

struct perf_part {
	char *name; /* inside the directory; "-" for a file by itself */
	int input_fd;
	int output_fd;
	bool is_main; /* has a header; the other parts of a directory are records only */
};

struct perf_place {
	const char *input_path;  /* "-": standard input */
	const char *output_path; /* "-": standard output */
	bool is_directory;
	bool replaces_input;
	struct stat input_status;
	struct perf_part *parts;
	size_t part_count;
	/* private */
	struct path_output file;
	char *directory; /* temporary, beside its place */
	int lock_fd;     /* of the input, when that is replaced */
};

#define PERF_PLACE_NONE                                                                            \
	{                                                                                          \
		.file = { .fd = -1, .directory_fd = -1 }, .lock_fd = -1                            \
	}

/* Opens the input and the output; when the output is a link, the output replaces its target. */
struct sym_error *perf_place_open(struct perf_place *place, const char *input_path,
				  const char *output_path);

/* Copies what is left of the input. `name`: for messages. */
struct sym_error *perf_files_copy(int input_fd, int output_fd, const char *name);

/* Gives the complete output its name, with owner and mode of the input. */
struct sym_error *perf_place_commit(struct perf_place *place);

/* Removes what was not committed, and frees the object. */
void perf_place_deinit(struct perf_place *place);

#endif
