/* SPDX-License-Identifier: MIT */
/*
 * MD5 (RFC 1321) of a few bytes. It is no protection against anybody; crossgen2
 * makes the signature of a map with it, and a whole cryptographic library would
 * be much for that.
 */
#ifndef LIBSYM_BASE_MD5_H
#define LIBSYM_BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

enum {
	MD5_BYTES = 16
};

void md5(const void *bytes, size_t count, uint8_t digest_ret[MD5_BYTES]);

#endif
