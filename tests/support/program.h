/* SPDX-License-Identifier: MIT */
/* Runs the dotnet-mapgen that was built beside the test program, as a child with its own cache, and
 * captures its output. */
#ifndef TESTS_SUPPORT_PROGRAM_H
#define TESTS_SUPPORT_PROGRAM_H

#include <stddef.h>
#include <sys/types.h>

struct program_run {
	int exit_code; /* -1 if a signal ended it */
	int signal;
	char *out; /* NUL terminated */
	size_t out_bytes;
	char *err;
};

/*
 * `arguments` is NULL terminated, without the program's name; `input` is its
 * standard input (NULL: empty). The cache is DIR/cache of `scratch`.
 */
struct program_run program_run(const char *scratch, const char *input,
			       const char *const *arguments);
void program_run_deinit(struct program_run *run);

/* Starts it with output to /dev/null; does not wait. */
pid_t program_start(const char *scratch, const char *const *arguments);

/* A new directory below /tmp (heap path), removed with its content. */
char *scratch_create(void);
void scratch_remove(char *scratch);

/* DIR/NAME, heap. */
char *scratch_path(const char *scratch, const char *name);
void scratch_write(const char *path, const void *bytes, size_t count);

/* The whole file, heap, NUL terminated; NULL if it cannot be read. */
char *scratch_read(const char *path, size_t *size_bytes_ret);

/* Path (heap) of the only entry of a directory whose name ends in `suffix`. Fails the test unless
 * there is exactly one. */
char *scratch_only_file(const char *directory, const char *suffix);

/* Number of lines of a text. */
size_t count_lines(const char *text);

/* Removes the perf map of an earlier process with this process's id from /tmp: its incomplete last
 * line would join with the first line of a test. */
void forget_perf_map(void);

#endif
