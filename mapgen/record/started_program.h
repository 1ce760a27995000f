/* SPDX-License-Identifier: MIT */
/*
 * A program that is started to be recorded. The child waits before exec() until its events are
 * open, so that nothing of the program is missed.
 */
#ifndef MAPGEN_RECORD_STARTED_PROGRAM_H
#define MAPGEN_RECORD_STARTED_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "libsym/error.h"

struct started_program {
	pid_t pid;    /* 0: none */
	int start_fd; /* a byte lets it go on, the end of the pipe ends it */
	int errno_fd; /* comes with an errno value when exec() fails, and ends when it succeeds */
	bool has_ended;
	int status; /* as of wait(), once it has ended */
};

/* Makes the child, with all rights that the caller has now. `words` end with NULL. */
struct sym_error *started_program_prepare(char **words, struct started_program *ret)
	__attribute__((warn_unused_result));

/* The child becomes the program. NOT_FOUND, PERMISSION or IO when it cannot. */
struct sym_error *started_program_begin(struct started_program *program, const char *name)
	__attribute__((warn_unused_result));

/* True once it has ended, *status then. */
bool started_program_has_ended(struct started_program *program);

/* A child that waits ends; a program that runs goes on. */
void started_program_deinit(struct started_program *program);

#endif
