/* SPDX-License-Identifier: MIT */
/*
 * The perf.data that perf-fix makes: a file, a directory of parts, or standard
 * output. It is written beside its place, or where nobody sees it, may be
 * changed until it is whole, and then appears at once. Knows files; nothing of
 * what is in them but that perf's directories have files `data`, `data.0`, ...
 */
#ifndef MAPGEN_PERF_OUTPUT_H
#define MAPGEN_PERF_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "libsym/base/path.h"

struct perf_part {
	char *name; /* inside the directory; "-" for a file by itself */
	int input_fd;
	int output_fd;
	bool is_main; /* has a header: the others of a directory are records only */
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
	int lock_fd;     /* of the input, where that is replaced */
};

#define PERF_PLACE_NONE                                                                            \
	{                                                                                          \
		.file = { .fd = -1, .directory_fd = -1 }, .lock_fd = -1                            \
	}

/* Opens the input and what is written for it; where the output is a link, in the place of what it
 * leads to. NULL on success, else heap text: why not. */
char *perf_place_open(struct perf_place *place, const char *input_path, const char *output_path);

/* The output is whole: it appears under its name with owner and mode of the input. */
char *perf_place_commit(struct perf_place *place);

/* Removes what was not committed, and ends the object. */
void perf_place_deinit(struct perf_place *place);

#endif
