/* SPDX-License-Identifier: MIT */
/*
 * The bytes of an open file, or of a part of it, for readers that fetch them piece by piece.
 */
#ifndef LIBSYM_FILE_SOURCE_H
#define LIBSYM_FILE_SOURCE_H

#include "libsym/error.h"
#include "libsym/format/byte_source.h"

/*
 * [offset, offset + size_bytes) of `fd` (borrowed); UINT64_MAX: to the end.
 * Errors: IO, ARGUMENT (no regular file, or shorter than said).
 */
struct sym_error *file_source_over(int fd, uint64_t offset, uint64_t size_bytes,
				   struct byte_source *ret) __attribute__((warn_unused_result));

#endif
