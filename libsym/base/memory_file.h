/* SPDX-License-Identifier: MIT */
/* Files that are memory. The limit of the size of files holds for them too, and whoever writes
 * beyond it gets SIGXFSZ, of which a program knows nothing that only asked for a name. */
#ifndef LIBSYM_BASE_MEMORY_FILE_H
#define LIBSYM_BASE_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

/* All of it, at `offset`. 0, or -errno: -EFBIG beyond the limit. */
int memory_file_write(int fd, const void *data, size_t size_bytes, uint64_t offset);

#endif
