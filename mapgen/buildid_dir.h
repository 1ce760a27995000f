/* SPDX-License-Identifier: MIT */
/*
 * perf's build-id cache as far as stand-ins go: where it is, and putting a file
 * into it. perf looks an id up as DIR/.build-id/XX/REST/elf, where REST is a link to a
 * directory; ours lie below DIR/dotnet-mapgen. What is there already stays.
 */
#ifndef MAPGEN_BUILDID_DIR_H
#define MAPGEN_BUILDID_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapgen/standin_elf.h"

/*
 * Path of the cache: `chosen` where given, else what perf itself uses: buildid.dir of
 * ~/.perfconfig or the system's perfconfig, else ~/.debug. NULL, heap, when there is no memory.
 */
char *buildid_dir_path(const char *chosen);

/*
 * Puts `size_bytes` of ELF file with build-id `id` in place; `name` is for
 * people who look into the cache. *new_ret: false when the same file was there.
 * NULL on success, else heap text: why not.
 */
char *buildid_dir_put(const char *cache, const uint8_t id[STANDIN_ID_BYTES], const char *name,
		      const void *bytes, size_t size_bytes, bool *new_ret);

#endif
