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

/* Computes the digests of the first size_bytes of `fd`; each result may be NULL. Returns 0 or a
 * negative errno (-EIO: the file is shorter). */
int digest_file(int fd, uint64_t size_bytes, uint8_t sha256[DIGEST_SHA256_BYTES],
		uint8_t sha1[DIGEST_SHA1_BYTES]);

#endif
