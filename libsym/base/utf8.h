/* SPDX-License-Identifier: MIT */
/* UTF-8 (RFC 3629). */
#ifndef LIBSYM_BASE_UTF8_H
#define LIBSYM_BASE_UTF8_H

#include "libsym/base/buf.h"

/* Are all bytes ASCII and not NUL? */
bool utf8_is_ascii(const char *text, size_t size_bytes);

/* Makes each control character of ASCII a question mark. */
void utf8_replace_controls(char *text, size_t size_bytes);

#define UTF8_NOT_WHOLE SIZE_MAX

/* Reads the character at the start of `text`, which has at least one byte. Returns its number of
 * bytes; 0 if the first byte is not valid; UTF8_NOT_WHOLE if the text ends inside the character. */
size_t utf8_read(const char *text, size_t size_bytes, uint32_t *ret);

/* Appends the first character of `text`, which is not empty, or U+FFFD for an invalid byte. Returns
 * how many bytes of `text` were consumed. The buffer keeps its failure. */
size_t utf8_append(struct buf *buf, const char *text);

/* Number of characters. An invalid byte counts as one. */
size_t utf8_count(const char *text);

/* Skips `count` characters, at most to the end. Returns a pointer into `text`. */
const char *utf8_skip(const char *text, size_t count);

/* How many blanks fill a text up to so many columns. Each character is taken for one column. */
int utf8_padding(const char *text, size_t columns);

#endif
