/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: errors, and how functions are declared.
 */
#ifndef LIBSYM_SYM_ERROR_H
#define LIBSYM_SYM_ERROR_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SYM_API        __attribute__((visibility("default")))
#define SYM_MUST_CHECK __attribute__((warn_unused_result))
#else
#define SYM_API
#define SYM_MUST_CHECK
#endif

/** The kind of a failure. */
enum sym_error_code {
	SYM_ERROR_NO_MEMORY = 1,  /**< out of memory */
	SYM_ERROR_ARGUMENT = 2,   /**< an argument is invalid */
	SYM_ERROR_NOT_FOUND = 3,  /**< no such process, file or entry */
	SYM_ERROR_PERMISSION = 4, /**< permission denied; the message names the missing right */
	SYM_ERROR_IO = 5,         /**< reading or writing failed */
	SYM_ERROR_FORMAT = 6,     /**< the bytes of a file contradict its format */
	SYM_ERROR_LIMIT = 7,      /**< a limit of the library was exceeded; the message names it */
	SYM_ERROR_STALE = 8,      /**< the process or file is not the one it was */
	SYM_ERROR_UNSUPPORTED = 9 /**< well formed, but of an unsupported kind or version */
};

/** A failure: a code, a message, and a place in a file where one is known. */
struct sym_error;

/**
 * Frees an error.
 *
 * @param error  NULL is accepted.
 */
SYM_API void sym_error_destroy(struct sym_error *error);

/**
 * Returns the kind of the failure.
 *
 * @param error  NULL is success.
 *
 * @return 0 for NULL.
 */
SYM_API enum sym_error_code sym_error_code(const struct sym_error *error);

/**
 * Returns one line for people.
 *
 * The line has no newline at its end.
 * It contains the path and the offset where they are known.
 * It lives as long as `error`.
 *
 * @param error  NULL is success.
 *
 * @return "no error" for NULL.
 */
SYM_API const char *sym_error_message(const struct sym_error *error);

/**
 * Returns the path of the file that could not be opened or read.
 *
 * For a descriptor that the caller passed in, it is a word that describes the file.
 * It lives as long as `error`.
 *
 * @param error  NULL is success.
 *
 * @return NULL when the failure is not about a file, and for NULL.
 */
SYM_API const char *sym_error_path(const struct sym_error *error);

/**
 * Returns the offset of the fault in the file of sym_error_path(), in bytes.
 *
 * @param error  NULL is success.
 *
 * @return UINT64_MAX when unknown, and for NULL.
 */
SYM_API uint64_t sym_error_offset(const struct sym_error *error);

#ifdef __cplusplus
}
#endif

#endif
