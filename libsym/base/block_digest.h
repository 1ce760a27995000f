/* SPDX-License-Identifier: MIT */
/*
 * A number that tells whether bytes are what they were, for some KiB at a time and within one run
 * of the program; not against who means to deceive. Nearly all of it is two additions a word, at
 * the speed of memory: sums of eight columns and sums of these, as Fletcher's checksum has them, of
 * which XXH3 makes the number.
 */
#ifndef LIBSYM_BASE_BLOCK_DIGEST_H
#define LIBSYM_BASE_BLOCK_DIGEST_H

#include <stddef.h>
#include <stdint.h>

uint64_t block_digest(const void *bytes, size_t size_bytes);

#endif
