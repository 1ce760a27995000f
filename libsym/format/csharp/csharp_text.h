/* SPDX-License-Identifier: MIT */
/* Tests and searches on a piece of text, for the readers of C# names. */
#ifndef LIBSYM_FORMAT_CSHARP_CSHARP_TEXT_H
#define LIBSYM_FORMAT_CSHARP_CSHARP_TEXT_H

#include <stdbool.h>

#include "libsym/format/dotnet/method_name.h"

bool csharp_text_starts_with(struct text_span text, const char *beginning);
bool csharp_text_is(struct text_span text, const char *word);

/* Where the bracket at `open` is closed, behind it; `end` when it is not. Brackets are (), [], <>.
 */
const char *csharp_text_skip_brackets(const char *open, const char *end);

#endif
