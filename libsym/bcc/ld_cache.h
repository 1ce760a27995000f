/* SPDX-License-Identifier: MIT */
/*
 * The cache of the dynamic linker, /etc/ld.so.cache, in the form that glibc 2.2
 * introduced (elf/cache.c, sysdeps/generic/dl-cache.h):
 *
 *   [the older table, "ld.so-1.7.0" and what belongs to it, padded to 8; gone since glibc 2.32]
 *   char magic[20] "glibc-ld.so.cache1.1"; u32 count; u32 string_bytes; u32 unused[5]
 *   count times: i32 flags; u32 name; u32 path; u32 os_version; u64 hwcap
 *
 * name and path are offsets of NUL-terminated strings from the magic.
 */
#ifndef LIBSYM_BCC_LD_CACHE_H
#define LIBSYM_BCC_LD_CACHE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Finds the first "lib"NAME".so" or "lib"NAME".so.N" with the flags. Returns its path inside
 * `bytes`, or NULL.
 */
const char *ld_cache_search(const void *bytes, size_t size_bytes, const char *name, int32_t flags);

/* Searches the machine's cache for a library that this program can load; from malloc(), or NULL. */
char *ld_cache_find(const char *name);

#endif
