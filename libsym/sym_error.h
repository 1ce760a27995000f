/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: why something failed, and how functions are declared.
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

/** What kind of failure an error is. */
enum sym_error_code {
	SYM_ERROR_NO_MEMORY = 1,  /**< memory could not be had */
	SYM_ERROR_ARGUMENT = 2,   /**< the caller's argument makes no sense */
	SYM_ERROR_NOT_FOUND = 3,  /**< no such process, file or entry */
	SYM_ERROR_PERMISSION = 4, /**< the system refused; the message says what is needed */
	SYM_ERROR_IO = 5,         /**< reading or writing failed */
	SYM_ERROR_FORMAT = 6,     /**< the bytes of a file contradict its format */
	SYM_ERROR_LIMIT = 7,      /**< a bound of the library was met; the message names it */
	SYM_ERROR_STALE = 8,      /**< the process or file is not the one it was */
	SYM_ERROR_UNSUPPORTED = 9 /**< well formed, but of a kind or version that is not read */
};

struct sym_error;

/** The kind of failure. */
SYM_API enum sym_error_code sym_error_code(const struct sym_error *error);

/** One line for a person, without a newline at its end; contains path and offset where these are
 * known. */
SYM_API const char *sym_error_message(const struct sym_error *error);

/** The file whose bytes or whose opening failed, for what the caller handed over open a word that
 * says what it is; NULL when no file was at fault. */
SYM_API const char *sym_error_path(const struct sym_error *error);

/** Offset into that file; UINT64_MAX when unknown. */
SYM_API uint64_t sym_error_offset(const struct sym_error *error);

SYM_API void sym_error_destroy(struct sym_error *error);

#ifdef __cplusplus
}
#endif

#endif
