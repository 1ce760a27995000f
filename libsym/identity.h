/* SPDX-License-Identifier: MIT */
/*
 * By what a file inside another file is known: sym_identity_read() for a part of one.
 */
#ifndef LIBSYM_IDENTITY_H
#define LIBSYM_IDENTITY_H

#include "libsym/error.h"

/* Of [offset, offset + size_bytes) of `fd`. Errors as sym_identity_read(). */
struct sym_error *identity_read_part(int fd, uint64_t offset, uint64_t size_bytes,
				     struct sym_identity *identity)
	__attribute__((warn_unused_result));

#endif
