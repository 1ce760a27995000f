/* SPDX-License-Identifier: MIT */
/*
 * Creates errors.
 * An error has a code, one line of text and, if bytes of a file were at fault, its path and the
 * offset.
 * Out of memory is a static object, so reporting it allocates nothing.
 */
#ifndef LIBSYM_ERROR_H
#define LIBSYM_ERROR_H

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/reader.h"
#include "libsym/libsym.h"

#define SYM_OFFSET_UNKNOWN UINT64_MAX

/* Static. It may be returned and destroyed any number of times. */
extern struct sym_error sym_error_no_memory;

/* An error without a file. Never NULL: falls back to sym_error_no_memory. */
struct sym_error *sym_error_create(enum sym_error_code code, const char *format, ...)
	__attribute__((format(printf, 2, 3), warn_unused_result));

/*
 * An error about a file. The message starts with "PATH: " or, if the offset is known, "PATH: offset
 * 0xN: ".
 */
struct sym_error *sym_error_create_path(enum sym_error_code code, const char *path, uint64_t offset,
					const char *format, ...)
	__attribute__((format(printf, 4, 5), warn_unused_result));

/*
 * Makes an error of errno: ENOENT, ESRCH -> NOT_FOUND; EACCES, EPERM -> PERMISSION; ENOMEM ->
 * NO_MEMORY; else IO. `what` as in "cannot open".
 */
struct sym_error *sym_error_from_errno(int errno_value, const char *path, const char *what)
	__attribute__((warn_unused_result));

/* NULL is no error, and no lack of memory. */
static inline bool sym_error_is_no_memory(const struct sym_error *error)
{
	return error && sym_error_code(error) == SYM_ERROR_NO_MEMORY;
}

/* Returns a lack of memory. Destroys any other error, and returns NULL. */
static inline struct sym_error *sym_error_only_no_memory(struct sym_error *error)
{
	if (sym_error_is_no_memory(error))
		return error;
	sym_error_destroy(error);
	return NULL;
}

/* True when no descriptors were left: the call may succeed later. False for NULL. */
bool sym_error_is_shortage(const struct sym_error *error);

/*
 * Makes an error of a failed reader. Its position is relative to `base_offset` of the file. `what`
 * names the structure.
 */
struct sym_error *sym_error_from_reader(const struct reader *reader, const char *path,
					uint64_t base_offset, const char *what)
	__attribute__((warn_unused_result));

/*
 * Makes an error of a failed buffer: NO_MEMORY, or LIMIT with `what` and the maximum in the
 * message.
 */
struct sym_error *sym_error_from_buf(const struct buf *buf, const char *what)
	__attribute__((warn_unused_result));

/* Adds the path to a FORMAT error of a pure reader, which knows no path. Returns `error`. */
struct sym_error *sym_error_with_path(struct sym_error *error, const char *path)
	__attribute__((warn_unused_result));

/*
 * Copies a struct of options that begins with its size; NULL: none are set. What a newer caller has
 * behind `size_bytes` must be zero. `name` is the struct's. Errors: ARGUMENT.
 */
struct sym_error *sym_error_read_opts(const void *opts, const char *name, void *ret,
				      size_t size_bytes) __attribute__((warn_unused_result));

DEFINE_GUARD(sym_error, struct sym_error *, sym_error_destroy)
#define AUTO_ERROR GUARDED(sym_error)

#endif
