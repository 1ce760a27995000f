/* SPDX-License-Identifier: MIT */
/* A byte_source over an open file or a part of it. */
#ifndef LIBSYM_FILE_FILE_SOURCE_H
#define LIBSYM_FILE_FILE_SOURCE_H

#include "libsym/error.h"
#include "libsym/format/file/byte_source.h"

/* Covers [offset, offset + size_bytes) of `fd` (borrowed); size UINT64_MAX: to the end. Errors: IO,
 * ARGUMENT (not a regular file, or too short). */
struct sym_error *file_source_over(int fd, uint64_t offset, uint64_t size_bytes,
				   struct byte_source *ret) __attribute__((warn_unused_result));

#endif
