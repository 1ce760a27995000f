/* SPDX-License-Identifier: MIT */
/*
 * Code that a process has mapped directly from an archive (zip, apk, jar), in which stored members
 * are contiguous.
 * It finds the mapped members, places them as the loader did, and resolves mappings of several
 * members by offset.
 */
#ifndef LIBSYM_IMAGE_DISCOVER_ARCHIVE_H
#define LIBSYM_IMAGE_DISCOVER_ARCHIVE_H

#include "libsym/image/mapped_file.h"

/*
 * If `host` is an archive and not an image itself, adds an image for each member with mapped code
 * that is an image.
 * A member where a mapping of code starts, and that cannot be an image as it is stored, becomes an
 * image with a problem.
 * The first image of the group is the host's and has all lines. A bad directory becomes its
 * problem.
 * Errors: NO_MEMORY.
 */
struct sym_error *snapshot_add_archive(const struct group_opening *opening,
				       struct object_file *host)
	__attribute__((warn_unused_result));

#endif
