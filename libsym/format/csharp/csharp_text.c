/* SPDX-License-Identifier: MIT */
#include "libsym/format/csharp/csharp_text.h"

#include <string.h>

bool csharp_text_starts_with(struct text_span text, const char *beginning)
{
	size_t size_bytes = strlen(beginning);

	return (size_t)(text.end - text.start) >= size_bytes &&
	       !memcmp(text.start, beginning, size_bytes);
}

bool csharp_text_is(struct text_span text, const char *word)
{
	return (size_t)(text.end - text.start) == strlen(word) &&
	       csharp_text_starts_with(text, word);
}

const char *csharp_text_skip_brackets(const char *open, const char *end)
{
	int depth = 0;

	for (const char *c = open; c < end; c++) {
		if (*c == '\\') {
			c++;
			continue;
		}
		depth += *c == '[' || *c == '<' || *c == '(';
		depth -= *c == ']' || *c == '>' || *c == ')';
		if (!depth)
			return c + 1;
	}
	return end;
}
