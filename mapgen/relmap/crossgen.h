/* SPDX-License-Identifier: MIT */
/*
 * Runs a real crossgen v1 (.NET Core 1.0 to 3.1) to make the map of one image: without a shell, in
 * its own process group, which is killed when the time is over. Success is exit status 0 and a map,
 * which must not be empty when the image has methods.
 */
#ifndef MAPGEN_RELMAP_CROSSGEN_H
#define MAPGEN_RELMAP_CROSSGEN_H

#include <stddef.h>

struct map_maker;
struct relmap_cache_entry;
struct sym_image;

/* Makes the text of the map (heap). */
struct sym_error *crossgen_make(const struct map_maker *maker,
				const struct relmap_cache_entry *slot, struct sym_image *image,
				char **text_ret, size_t *size_bytes_ret);

#endif
