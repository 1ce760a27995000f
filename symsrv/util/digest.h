/* SPDX-License-Identifier: MIT */
/* SHA-1 and SHA-256 of memory and of the bytes of an open file. The only file that includes
 * OpenSSL. */
#ifndef SYMSRV_UTIL_DIGEST_H
#define SYMSRV_UTIL_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_SHA1_BYTES   20
#define DIGEST_SHA256_BYTES 32

/* Returns 0 or a negative errno. */
int digest_sha256(const void *bytes, size_t size_bytes, uint8_t ret[DIGEST_SHA256_BYTES]);

/* Computes a digest of the first size_bytes of `fd`, of DIGEST_SHA1_BYTES or DIGEST_SHA256_BYTES.
 * Returns 0 or a negative errno (-EIO: the file is shorter). */
int digest_file(int fd, uint64_t size_bytes, size_t digest_bytes, uint8_t *ret);

#endif
