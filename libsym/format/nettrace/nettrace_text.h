/* SPDX-License-Identifier: MIT */
/*
 * Reads the texts of nettrace: UTF-16 up to a NUL, and in version 6 UTF-8 after its length (leb.h).
 */
#ifndef LIBSYM_FORMAT_NETTRACE_NETTRACE_TEXT_H
#define LIBSYM_FORMAT_NETTRACE_NETTRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/base/reader.h"

/* Reads a UTF-16 string that ends with a NUL and appends it as UTF-8. Lone surrogates become
 * U+FFFD. */
void nettrace_read_string(struct reader *reader, struct buf *out);

/* Appends `size_bytes` of UTF-16 as UTF-8, up to a NUL. */
void nettrace_append_utf16(struct buf *out, const uint8_t *bytes, size_t size_bytes);

/* Return a text on the heap. NULL: the reader has failed, the text is longer than `most_bytes`, or
 * there is no memory (*no_memory). */
char *nettrace_read_text16(struct reader *reader, size_t most_bytes, bool *no_memory);
char *nettrace_read_text8(struct reader *reader, size_t most_bytes, bool *no_memory);

void nettrace_skip_text8(struct reader *reader);

#endif
