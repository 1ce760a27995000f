/* SPDX-License-Identifier: MIT */
/*
 * Code that a process has mapped straight out of an archive (zip, apk, jar), where members that
 * are stored as they are lie in it in one piece. Finds the members that mappings show, places them
 * as the loader did, and tells mappings that show several of them by offset.
 */
#ifndef LIBSYM_SNAPSHOT_ARCHIVE_H
#define LIBSYM_SNAPSHOT_ARCHIVE_H

#include "libsym/image_group.h"

/*
 * If `host`, which is no image itself, is an archive and code of it is mapped: a module for each
 * member that a mapping of code shows and that is an image; one with trouble for a member
 * that cannot be one as it is stored and in which a mapping of code begins. The group's first
 * module is the host's and has all lines; what is wrong with the directory becomes its
 * trouble. Errors: NO_MEMORY.
 */
struct sym_error *snapshot_add_archive(const struct group_opening *opening, struct image *host)
	__attribute__((warn_unused_result));

#endif
