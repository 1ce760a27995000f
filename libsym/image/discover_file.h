/* SPDX-License-Identifier: MIT */
/*
 * Finds the images that a mapped file makes: opens it, checks that it is the mapped one, places it,
 * and assigns its mappings.
 */
#ifndef LIBSYM_IMAGE_DISCOVER_FILE_H
#define LIBSYM_IMAGE_DISCOVER_FILE_H

#include "libsym/image/mapped_file.h"

/*
 * For mapped_file_open().
 * A file that cannot be used becomes an image with a problem. So does one that cannot be checked
 * because the process has ended.
 * Errors: NO_MEMORY.
 */
struct sym_error *snapshot_open_group(const struct group_opening *opening)
	__attribute__((warn_unused_result));

#endif
