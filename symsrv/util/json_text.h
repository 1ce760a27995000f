/* SPDX-License-Identifier: MIT */
/* Texts as JSON strings, written without a tree of values. */
#ifndef SYMSRV_UTIL_JSON_TEXT_H
#define SYMSRV_UTIL_JSON_TEXT_H

#include "libsym/base/buf.h"

/*
 * Appends a JSON string with its quotation marks. If `text` is not UTF-8, its bytes beyond ASCII
 * become question marks. The buffer keeps its failure.
 */
void json_text_append(struct buf *buf, const char *text);

#endif
