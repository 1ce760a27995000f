/* SPDX-License-Identifier: MIT */
/* UTF-8 (RFC 3629) for outputs that may hold nothing else, such as JSON. */
#ifndef LIBSYM_BASE_UTF8_H
#define LIBSYM_BASE_UTF8_H

#include "libsym/base/buf.h"

/*
 * Appends the character at the start of `text`, which is not empty, or U+FFFD for a byte that does
 * not belong to one. Returns how many bytes of `text` that took; the buffer keeps its failure.
 */
size_t utf8_append(struct buf *buf, const char *text);

#endif
