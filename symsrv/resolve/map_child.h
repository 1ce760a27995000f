/* SPDX-License-Identifier: MIT */
/* A process of symbol_child.h that makes the map of one PE image, and ends. */
#ifndef SYMSRV_RESOLVE_MAP_CHILD_H
#define SYMSRV_RESOLVE_MAP_CHILD_H

#include <stddef.h>

#include "libsym/libsym.h"

/* The text is sent in parts. */
#define MAP_CHILD_PART_BYTES ((size_t)1 << 20)

/* Reads the image, sends its map to `fd`, or why there is none. Returns the exit status. */
int map_child_run(int fd, int image_fd, enum sym_map_format format);

#endif
