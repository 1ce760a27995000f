/* SPDX-License-Identifier: MIT */
/*
 * The process that reads foreign debug information of one image, and answers questions about it
 * until its server ends or closes the socket. The server starts its own program with the one
 * argument SYMBOL_CHILD_ARGUMENT: so nothing of the server's memory, with its credentials, is in
 * the process.
 */
#ifndef SYMSRV_RESOLVE_SYMBOL_CHILD_H
#define SYMSRV_RESOLVE_SYMBOL_CHILD_H

#include <stddef.h>
#include <stdint.h>

#define SYMBOL_CHILD_ARGUMENT "--symbol-worker"
/* Answers come in parts of so many addresses: a deadline leaves what was answered. */
#define SYMBOL_CHILD_PART 256
/* Names of several kilobytes, and 64 inlined functions. */
#define SYMBOL_CHILD_PART_BYTES     ((size_t)64 << 20)
#define SYMBOL_CHILD_MOST_ADDRESSES ((size_t)100000)

/* Serves one server on `fd`. Returns the exit status. */
int symbol_child_run(int fd);

#endif
