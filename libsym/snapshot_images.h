/* SPDX-License-Identifier: MIT */
/*
 * Which images a mapped file makes: opens it, places it, checks that it is the mapped one, and
 * tells every mapping whose it is.
 */
#ifndef LIBSYM_SNAPSHOT_IMAGES_H
#define LIBSYM_SNAPSHOT_IMAGES_H

#include "libsym/image_group.h"

/*
 * For image_group_open(). A file that cannot be used is an image with trouble; so is one of which
 * nobody can tell any more whether it is the mapped one, because the process has ended.
 * Errors: NO_MEMORY.
 */
struct sym_error *snapshot_open_group(const struct group_opening *opening)
	__attribute__((warn_unused_result));

#endif
