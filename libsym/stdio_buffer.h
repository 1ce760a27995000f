/* SPDX-License-Identifier: MIT */
/*
 * What a process has written with stdio and its C library still holds back. A jit that writes about
 * itself has told nobody of its newest code then: the hot loop of a program is often the last that
 * V8 compiles, and is not in the jitdump as long as the loop runs. The stream is found from
 * _IO_list_all, and is laid out as in our own <stdio.h>, which glibc keeps for programs that have
 * it compiled in. Of live processes with glibc; nothing is stopped.
 */
#ifndef LIBSYM_STDIO_BUFFER_H
#define LIBSYM_STDIO_BUFFER_H

#include "libsym/address_space.h"
#include "libsym/error.h"
#include "libsym/process.h"
#include "libsym/source/written_file.h"

/*
 * Who reads the buffer of the stream with which the process writes to the file that `fd` is open
 * for. `process` is borrowed, until it is closed. ret->context is NULL where there is no such
 * stream, also where the memory may not be read. Errors: NO_MEMORY.
 */
struct sym_error *stdio_buffer_find(const struct process *process,
				    const struct address_space *space, int fd,
				    struct held_back *ret) __attribute__((warn_unused_result));

#endif
