/* SPDX-License-Identifier: MIT */
#include "libsym/base/block_digest.h"

#include <xxhash.h>

#include "libsym/base/processor.h"

static uint64_t digest_of_library(const void *bytes, size_t size_bytes)
{
	return XXH3_64bits(bytes, size_bytes);
}

/* clang does not know this pragma; it takes what the library has. */
#if defined(__x86_64__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC target("avx2")
#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t digest_by_32(const void *bytes, size_t size_bytes)
{
	return XXH3_64bits(bytes, size_bytes);
}
#pragma GCC pop_options

uint64_t block_digest(const void *bytes, size_t size_bytes)
{
	return processor_has_avx2() ? digest_by_32(bytes, size_bytes)
				    : digest_of_library(bytes, size_bytes);
}
#else
uint64_t block_digest(const void *bytes, size_t size_bytes)
{
	return digest_of_library(bytes, size_bytes);
}
#endif
