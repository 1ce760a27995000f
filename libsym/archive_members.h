/* SPDX-License-Identifier: MIT */
/*
 * The images that are members of an archive which was opened by itself: an offset into the archive
 * is one into the member that lies there. Looks for them when first asked.
 */
#ifndef LIBSYM_ARCHIVE_MEMBERS_H
#define LIBSYM_ARCHIVE_MEMBERS_H

#include "libsym/module.h"

struct archive_members;

/*
 * The image that a byte of the file of `archive` lies in, and its offset there; NULL when it is no
 * archive, or no stored member that is an image lies there. It lives as long as `archive`.
 * Thread safe.
 */
struct sym_image *archive_member_at(struct sym_image *archive, uint64_t offset,
				    uint64_t *inside_ret);

void archive_members_destroy(struct archive_members *members);

#endif
