/* SPDX-License-Identifier: MIT */
/* The image of a file that is there. */
#ifndef TESTS_SUPPORT_IMAGE_FILE_H
#define TESTS_SUPPORT_IMAGE_FILE_H

#include <criterion/criterion.h>
#include <fcntl.h>

#include "libsym/image.h"

static inline struct image *image_file_open(const char *path)
{
	struct image *image = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_null(image_open(fd, path, 0, SPARSE_FILE_TO_END, &image));
	return image;
}

#endif
