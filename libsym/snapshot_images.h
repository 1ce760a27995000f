/* SPDX-License-Identifier: MIT */
/*
 * Which images the mapped files of a process make: opens each file, places it,
 * checks that it is the mapped one, and tells every mapping whose it is.
 */
#ifndef LIBSYM_SNAPSHOT_IMAGES_H
#define LIBSYM_SNAPSHOT_IMAGES_H

#include "libsym/snapshot.h"

/* Fills in modules, images and is_placed. A file that cannot be used is an image with trouble.
 * Errors: NO_MEMORY. */
struct sym_error *snapshot_open_images(struct sym_snapshot *snapshot)
	__attribute__((warn_unused_result));

#endif
