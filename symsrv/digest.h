/* SPDX-License-Identifier: MIT */
/* SHA-1 and SHA-256 of memory and of the bytes of an open file. The only includer of OpenSSL. */
#ifndef SYMSRV_DIGEST_H
#define SYMSRV_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_SHA1_BYTES   20
#define DIGEST_SHA256_BYTES 32

/* 0 or a negative errno. */
int digest_sha256(const void *bytes, size_t size_bytes, uint8_t ret[DIGEST_SHA256_BYTES]);

/* Of the first size_bytes of `fd`; either result may be NULL. 0 or a negative errno (-EIO: the file
 * is shorter). */
int digest_file(int fd, uint64_t size_bytes, uint8_t sha256[DIGEST_SHA256_BYTES],
		uint8_t sha1[DIGEST_SHA1_BYTES]);

#endif
