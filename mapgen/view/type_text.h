/* SPDX-License-Identifier: MIT */
/* A type as a person reads it: "List<Order>" for "System.Collections.Generic.List`1[Store.Order]".
 */
#ifndef MAPGEN_VIEW_TYPE_TEXT_H
#define MAPGEN_VIEW_TYPE_TEXT_H

#include "libsym/base/buf.h"

/* Appends the short name: without namespaces, with C#'s words for the types that have one. */
void type_text_short(struct buf *text, const char *type);

#endif
