/* SPDX-License-Identifier: MIT */
/*
 * XXH3 of 64 bits, as XXH3_64bits() of libxxhash has it, with the widest vectors that the
 * processor has: the library that distributions ship is built for the oldest one.
 */
#ifndef LIBSYM_BASE_BLOCK_DIGEST_H
#define LIBSYM_BASE_BLOCK_DIGEST_H

#include <stddef.h>
#include <stdint.h>

uint64_t block_digest(const void *bytes, size_t size_bytes);

#endif
