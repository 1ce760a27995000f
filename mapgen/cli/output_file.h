/* SPDX-License-Identifier: MIT */
/* A file that a command writes as a whole: beside its place, renamed when all of it is there. */
#ifndef MAPGEN_CLI_OUTPUT_FILE_H
#define MAPGEN_CLI_OUTPUT_FILE_H

#include <stdio.h>

#include "libsym/libsym.h"

/* Writes the content; `context` is the caller's. */
typedef struct sym_error *output_file_fn(const void *context, FILE *to);

/* Returns an exit code; a message says why it failed. The mode is 0644. */
int output_file_write(const char *path, output_file_fn *write, const void *context);

#endif
