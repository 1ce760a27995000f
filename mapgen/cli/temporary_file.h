/* SPDX-License-Identifier: MIT */
/*
 * A file without a name, which only the caller can read, and which ends when it is closed. It lies
 * in $TMPDIR or /var/tmp; in /tmp only when that fails, because many machines have /tmp in memory.
 */
#ifndef MAPGEN_CLI_TEMPORARY_FILE_H
#define MAPGEN_CLI_TEMPORARY_FILE_H

#include <stdio.h>

#include "libsym/error.h"

/* Errors: IO. */
struct sym_error *temporary_file_open(int *ret) __attribute__((warn_unused_result));
struct sym_error *temporary_file_stream(FILE **ret) __attribute__((warn_unused_result));

#endif
