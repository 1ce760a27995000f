/* SPDX-License-Identifier: MIT */
/*
 * Percent-encoding of URL paths (RFC 3986, section 2.1). Knows bytes, not what a path means.
 * Refuses NUL and other control characters, and incomplete escapes.
 */
#ifndef SYMSRV_KEY_PERCENT_H
#define SYMSRV_KEY_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

#include "libsym/base/buf.h"

/*
 * Decodes `text` to `room`, which has room for size_bytes + 1 bytes (a NUL is added; both may be
 * the same buffer). False for an incomplete escape or a control character.
 */
bool percent_decode(const char *text, size_t size_bytes, char *room, size_t *length_ret);

/* Appends `text`; escapes every character that is neither "unreserved" nor in `keep`. */
bool percent_encode(struct buf *buf, const char *text, const char *keep);

#endif
