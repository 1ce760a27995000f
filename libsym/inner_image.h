/* SPDX-License-Identifier: MIT */
/*
 * Images that are a part of another file as it is: an assembly of a single-file application, a
 * library in an archive. Their path is "FILE!/NAME", the way tools write a file inside a file.
 */
#ifndef LIBSYM_INNER_IMAGE_H
#define LIBSYM_INNER_IMAGE_H

#include "libsym/format/byte_source.h"
#include "libsym/format/zip.h"
#include "libsym/image_group.h"

/* Heap; NULL for want of memory. */
char *inner_image_path(const char *host, const char *name, size_t name_bytes);

/* [offset, offset + size_bytes) of `fd`, which stays the caller's. Errors: those of image_open().
 */
struct sym_error *inner_image_open_part(int fd, const char *path, uint64_t offset,
					uint64_t size_bytes, struct image **ret)
	__attribute__((warn_unused_result));

/* Do these bytes of an archive begin like an image? */
bool inner_image_begins_at(const struct byte_source *source, uint64_t offset, uint64_t size_bytes);

/*
 * [offset, offset + size_bytes) of the file of `host`; that which was open for the lines
 * that there were before, if the host is. Errors: those of image_open().
 */
struct sym_error *inner_image_open(const struct group_opening *opening, const struct image *host,
				   const char *path, uint64_t offset, uint64_t size_bytes,
				   struct image **ret) __attribute__((warn_unused_result));

/*
 * The archive that a file is; *is_zip_ret is false for one that is none. *source_ret borrows `fd`.
 * Errors: those of zip_read(), with the path.
 */
struct sym_error *inner_image_read_archive(int fd, const char *path, struct byte_source *source_ret,
					   struct zip *ret, bool *is_zip_ret)
	__attribute__((warn_unused_result));

/*
 * The stored member that "ARCHIVE!/NAME" says; *ret is NULL when `path` is not of that form, or
 * ARCHIVE is no archive. Errors: those of opening ARCHIVE, of finding NAME in it, of image_open().
 */
struct sym_error *inner_image_open_path(const char *path, struct image **ret)
	__attribute__((warn_unused_result));

#endif
