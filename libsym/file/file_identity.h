/* SPDX-License-Identifier: MIT */
/* Identities of files inside other files. */
#ifndef LIBSYM_FILE_FILE_IDENTITY_H
#define LIBSYM_FILE_FILE_IDENTITY_H

#include "libsym/error.h"

/* Like sym_identity_read() for [offset, offset + size_bytes) of `fd`. */
struct sym_error *file_identity_read_part(int fd, uint64_t offset, uint64_t size_bytes,
					  struct sym_identity *identity)
	__attribute__((warn_unused_result));

#endif
