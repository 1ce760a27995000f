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

int digest_file(int fd, uint64_t size_bytes, size_t digest_bytes, uint8_t *ret)
{
	EVP_MD_CTX *digest GUARDED(digest) = EVP_MD_CTX_new();
	char *room AUTO_FREE = malloc(step_bytes);

	if (!room || !digest ||
	    EVP_DigestInit(digest, digest_bytes == DIGEST_SHA1_BYTES ? EVP_sha1() : EVP_sha256()) !=
		    1)
		return -ENOMEM;
	for (uint64_t offset = 0; offset < size_bytes;) {
		uint64_t left = size_bytes - offset;
		size_t count = left < step_bytes ? (size_t)left : step_bytes;
		int failure = path_read_at(fd, room, count, offset);

		if (failure)
			return failure;
		if (EVP_DigestUpdate(digest, room, count) != 1)
			return -ENOMEM;
		offset += count;
	}
	return EVP_DigestFinal(digest, ret, NULL) == 1 ? 0 : -ENOMEM;
}
