/* SPDX-License-Identifier: MIT */
/*
 * The cache of relative maps has a size limit. Its content depends on the processes that were
 * looked at, so another user could make root's cache grow without end. Beyond the limit the
 * directories that were not used for the longest time are removed.
 */
#ifndef MAPGEN_RELMAP_CACHE_LIMIT_H
#define MAPGEN_RELMAP_CACHE_LIMIT_H

#include <stdint.h>

/* Limit for all maps of a cache, in bytes. The maps of .NET 10 with ASP.NET have 60 MB. */
#define CACHE_LIMIT_BYTES ((uint64_t)1 << 30)

/* Marks a directory of the cache as used now. */
void cache_limit_touch(int directory_fd);

/* Removes directories of content keys, least recently used first, until at most `most_bytes` are
 * left. An entry with an error stays; others may use the cache at the same time. */
void cache_limit_hold(int cache_fd, uint64_t most_bytes);

#endif
