/* SPDX-License-Identifier: MIT */
/* Lines of the precompiled methods of an image. */
#ifndef LIBSYM_IMAGE_IMAGE_LINES_H
#define LIBSYM_IMAGE_IMAGE_LINES_H

#include "libsym/file/managed_line.h"
#include "libsym/format/dotnet/r2r_debug.h"
#include "libsym/symbols/result.h"

struct sym_image;

/*
 * The line of the code at `rva`. Its strings live as long as the image. Thread safe.
 * Returns false when no precompiled method is there.
 */
bool image_find_line(struct sym_image *image, uint32_t rva, struct managed_line *ret);

/*
 * Appends as uint64_t where the line of a precompiled method may change, which an answer is of; in
 * the numbers of answer->address. Without an IL map there is nothing. Thread safe.
 */
void image_append_rows(const struct sym_answer *answer, struct buf *ret);

/* As image_describe(), with lines of managed code. */
struct sym_error *image_describe_whole(struct sym_image *image, uint64_t position,
				       struct sym_result *result, size_t number)
	__attribute__((warn_unused_result));

#endif
