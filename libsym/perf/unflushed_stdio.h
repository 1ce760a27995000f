/* SPDX-License-Identifier: MIT */
/*
 * Reads the bytes that a process has written with stdio and not flushed yet.
 * The newest code of a JIT is often there only: a hot loop is the last function that V8 compiles,
 * and does not reach the jitdump while the loop runs.
 * The stream is found from _IO_list_all. Its layout is that of our own <stdio.h>, which glibc never
 * changes.
 * For live processes with glibc. Nothing is stopped.
 */
#ifndef LIBSYM_PERF_UNFLUSHED_STDIO_H
#define LIBSYM_PERF_UNFLUSHED_STDIO_H

#include "libsym/error.h"
#include "libsym/perf/growing_file.h"
#include "libsym/process/address_space.h"
#include "libsym/process/process.h"

/*
 * Finds the stream with which the process writes to the file open as `fd`, and makes a reader of
 * its buffer.
 * `process` is borrowed until the reader is closed.
 * ret->context is NULL when there is no such stream, or the memory cannot be read.
 * Errors: NO_MEMORY.
 */
struct sym_error *unflushed_stdio_find(const struct process *process,
				       const struct address_space *space, int fd,
				       struct unflushed *ret) __attribute__((warn_unused_result));

#endif
