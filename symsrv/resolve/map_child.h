/* SPDX-License-Identifier: MIT */
/* A process of symbol_child.h that makes the map of one PE image, and ends. */
#ifndef SYMSRV_RESOLVE_MAP_CHILD_H
#define SYMSRV_RESOLVE_MAP_CHILD_H

#include "libsym/libsym.h"

/* Reads the image, sends its map to `fd`, or why there is none. Returns the exit status. */
int map_child_run(int fd, int image_fd, enum sym_map_format format);

#endif
