/* SPDX-License-Identifier: MIT */
/*
 * Percent-encoding of URL paths (RFC 3986, section 2.1). Knows bytes, not what
 * a path means. Refuses what no honest path contains: NUL and other control
 * characters, half escapes.
 */
#ifndef SYMSRV_PERCENT_H
#define SYMSRV_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

#include "libsym/base/buf.h"

/*
 * Decodes `text` to `room`, which has room for size_bytes + 1 bytes (a NUL is
 * added; the two may be the same). False for a half escape or a control character.
 */
bool percent_decode(const char *text, size_t size_bytes, char *room, size_t *length_ret);

/* Appends `text` with everything outside "unreserved" and `keep` escaped. */
bool percent_encode(struct buf *buf, const char *text, const char *keep);

#endif
