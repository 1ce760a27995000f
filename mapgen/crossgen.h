/* SPDX-License-Identifier: MIT */
/*
 * Runs a real crossgen v1 (.NET Core 1.0 to 3.1) to have it make the map of one
 * image. No shell; its own process group, killed as a whole when the time is
 * over. Its word is not taken: only exit 0 and a map that is there, and that
 * is not empty where the image has methods, count as success.
 */
#ifndef MAPGEN_CROSSGEN_H
#define MAPGEN_CROSSGEN_H

#include <stddef.h>

struct map_maker;
struct map_slot;
struct sym_image;

/* NULL on success, with the text of the map (heap); else heap text: why not. */
char *crossgen_make(const struct map_maker *maker, const struct map_slot *slot,
		    struct sym_image *image, char **text_ret, size_t *size_bytes_ret);

#endif
