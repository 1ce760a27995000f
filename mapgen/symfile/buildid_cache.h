/* SPDX-License-Identifier: MIT */
/*
 * Finds perf's build-id cache and puts symbol files into it. perf looks an id up as
 * DIR/.build-id/XX/REST/elf, where REST is a link to a directory; ours are below DIR/dotnet-mapgen.
 * Existing files stay.
 */
#ifndef MAPGEN_SYMFILE_BUILDID_CACHE_H
#define MAPGEN_SYMFILE_BUILDID_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapgen/symfile/symfile.h"

/*
 * Path of the cache: `chosen` if given, else what perf uses: buildid.dir of ~/.perfconfig or the
 * system's perfconfig, else ~/.debug. NULL when out of memory; heap.
 */
char *buildid_dir_path(const char *chosen);

/*
 * Writes `size_bytes` of an ELF file with build-id `id`; `name` is for people who read the cache.
 * *new_ret: false when the same file was there.
 */
struct sym_error *buildid_dir_put(const char *cache, const uint8_t id[SYMFILE_ID_BYTES],
				  const char *name, const void *bytes, size_t size_bytes,
				  bool *new_ret);

#endif
