/* SPDX-License-Identifier: MIT */
/*
 * Runs the dotnet-mapgen that was built beside the test program, as a child
 * with a cache of its own, and keeps what it said. Knows nothing of commands.
 */
#ifndef TESTS_SUPPORT_PROGRAM_H
#define TESTS_SUPPORT_PROGRAM_H

#include <stddef.h>
#include <sys/types.h>

struct program_run {
	int exit_code; /* -1 when a signal ended it */
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

/* Starts it without waiting, output to /dev/null. */
pid_t program_start(const char *scratch, const char *const *arguments);

/* A new directory below /tmp (heap path); removed with all that is in it. */
char *scratch_create(void);
void scratch_remove(char *scratch);

/* DIR/NAME, heap. */
char *scratch_path(const char *scratch, const char *name);
void scratch_write(const char *path, const void *bytes, size_t count);

/* The whole file, heap, NUL terminated; NULL when it cannot be read. */
char *scratch_read(const char *path, size_t *size_bytes_ret);

/* Path (heap) of the only entry of a directory whose name ends in `suffix`; fails the test when
 * there is not just one. */
char *scratch_only_file(const char *directory, const char *suffix);

/* Number of lines of a text. */
size_t count_lines(const char *text);

/* Removes the perf map that a process which had this one's id left in /tmp: its torn last line
 * would take the first that a test appends. */
void forget_perf_map(void);

#endif
