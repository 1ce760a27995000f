/* SPDX-License-Identifier: MIT */
/*
 * Images inside another file: an assembly of a single-file application, a library in an archive.
 * Their path is "FILE!/NAME", as other tools write it.
 */
#ifndef LIBSYM_IMAGE_EMBEDDED_IMAGE_H
#define LIBSYM_IMAGE_EMBEDDED_IMAGE_H

#include "libsym/format/file/byte_source.h"
#include "libsym/format/file/zip.h"
#include "libsym/image/mapped_file.h"

/* From malloc(); NULL when out of memory. */
char *embedded_image_path(const char *host, const char *name, size_t name_bytes);

/*
 * Opens [offset, offset + size_bytes) of `fd`, which stays the caller's.
 * Errors: those of object_file_open().
 */
struct sym_error *embedded_image_open_part(struct budget_account *account, int fd, const char *path,
					   uint64_t offset, uint64_t size_bytes,
					   struct object_file **ret)
	__attribute__((warn_unused_result));

/* True when the bytes of an archive at `offset` begin like an image. */
bool embedded_image_begins_at(const struct byte_source *source, uint64_t offset,
			      uint64_t size_bytes);

/*
 * Opens [offset, offset + size_bytes) of the file of `host`.
 * After a refresh that has found the same host, *ret is the object that was open before.
 * Errors: those of object_file_open().
 */
struct sym_error *embedded_image_open(const struct group_opening *opening,
				      const struct object_file *host, const char *path,
				      uint64_t offset, uint64_t size_bytes,
				      struct object_file **ret) __attribute__((warn_unused_result));

/*
 * Reads the directory of an archive. *is_zip_ret is false when it is not an archive. *source_ret
 * borrows `fd`.
 * Errors: those of zip_read(), with the path.
 */
struct sym_error *embedded_image_read_archive(int fd, const char *path,
					      struct byte_source *source_ret, struct zip *ret,
					      bool *is_zip_ret) __attribute__((warn_unused_result));

/*
 * Opens the stored member of "ARCHIVE!/NAME".
 * *ret is NULL when `path` does not have that form, or ARCHIVE is not an archive.
 * Errors: those of opening ARCHIVE, of finding NAME in it, and of object_file_open().
 */
struct sym_error *embedded_image_open_path(struct budget *budget, const char *path,
					   struct object_file **ret)
	__attribute__((warn_unused_result));

#endif
