/* SPDX-License-Identifier: MIT */
#include "symsrv/util/digest.h"

#include <errno.h>
#include <openssl/evp.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"

static const size_t step_bytes = (size_t)256 << 10;

DEFINE_GUARD(digest, EVP_MD_CTX *, EVP_MD_CTX_free)

int digest_sha256(const void *bytes, size_t size_bytes, uint8_t ret[DIGEST_SHA256_BYTES])
{
	return EVP_Digest(bytes, size_bytes, ret, NULL, EVP_sha256(), NULL) == 1 ? 0 : -ENOMEM;
}

int digest_file(int fd, uint64_t size_bytes, uint8_t sha256[DIGEST_SHA256_BYTES],
		uint8_t sha1[DIGEST_SHA1_BYTES])
{
	EVP_MD_CTX *long_one GUARDED(digest) = sha256 ? EVP_MD_CTX_new() : NULL;
	EVP_MD_CTX *short_one GUARDED(digest) = sha1 ? EVP_MD_CTX_new() : NULL;
	char *room AUTO_FREE = malloc(step_bytes);
	uint64_t offset;

	if (!room || (sha256 && (!long_one || EVP_DigestInit(long_one, EVP_sha256()) != 1)) ||
	    (sha1 && (!short_one || EVP_DigestInit(short_one, EVP_sha1()) != 1)))
		return -ENOMEM;
	for (offset = 0; offset < size_bytes;) {
		uint64_t left = size_bytes - offset;
		size_t count = left < step_bytes ? (size_t)left : step_bytes;
		int failure = path_read_at(fd, room, count, offset);

		if (failure)
			return failure;
		if ((sha256 && EVP_DigestUpdate(long_one, room, count) != 1) ||
		    (sha1 && EVP_DigestUpdate(short_one, room, count) != 1))
			return -ENOMEM;
		offset += count;
	}
	if ((sha256 && EVP_DigestFinal(long_one, sha256, NULL) != 1) ||
	    (sha1 && EVP_DigestFinal(short_one, sha1, NULL) != 1))
		return -ENOMEM;
	return 0;
}
