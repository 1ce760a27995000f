/* SPDX-License-Identifier: MIT */
/* Opens the image of an existing file. */
#ifndef TESTS_SUPPORT_IMAGE_FILE_H
#define TESTS_SUPPORT_IMAGE_FILE_H

#include <criterion/criterion.h>
#include <fcntl.h>

#include "libsym/file/object_file.h"

static inline struct object_file *image_file_open(const char *path)
{
	struct object_file *object = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_null(object_file_open(NULL, fd, path, 0, SPARSE_FILE_TO_END, &object));
	return object;
}

#endif
