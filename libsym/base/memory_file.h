/* SPDX-License-Identifier: MIT */
/* Writes to files that live in memory (memfd). RLIMIT_FSIZE applies to them too, and a write past
 * it raises SIGXFSZ, which a program that asked for a name does not expect. */
#ifndef LIBSYM_BASE_MEMORY_FILE_H
#define LIBSYM_BASE_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

/* Writes all bytes at `offset`. Returns 0 or a negative errno: -EFBIG past the limit. */
int memory_file_write(int fd, const void *data, size_t size_bytes, uint64_t offset);

#endif
