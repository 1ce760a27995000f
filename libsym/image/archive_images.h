/* SPDX-License-Identifier: MIT */
/*
 * The images inside an archive that sym_image_open() opened: an offset into the archive becomes an
 * offset into the member that contains it.
 * The first call reads the directory of the archive.
 */
#ifndef LIBSYM_IMAGE_ARCHIVE_IMAGES_H
#define LIBSYM_IMAGE_ARCHIVE_IMAGES_H

#include "libsym/image/image.h"

/*
 * The image that contains a byte of the file of `archive`, and the offset in it.
 * NULL when the file is not an archive, or no stored member there is an image.
 * It lives as long as `archive`. Thread safe.
 */
struct sym_image *archive_image_at(struct sym_image *archive, uint64_t offset,
				   uint64_t *inside_ret);

#endif
