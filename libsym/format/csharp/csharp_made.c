/* SPDX-License-Identifier: MIT */
#include "libsym/format/csharp/csharp_made.h"

#include <string.h>

#include "libsym/format/csharp/csharp_text.h"

static bool is_hex(char byte)
{
	return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'F');
}

static const char *skip_digits(const char *at, const char *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/* "7", "7_1", and behind '#' the generation of an edit: "7_1#2". */
static bool is_ordinal(const char *at, const char *end)
{
	for (int numbers = 0; numbers < 2; numbers++) {
		const char *digits = at;

		at = skip_digits(at, end);
		if (at == digits)
			return false;
		if (at < end && *at == '#')
			at = skip_digits(at + 1, end);
		if (at == end)
			return true;
		if (*at++ != '_')
			return false;
	}
	return false;
}

/* "b__7_1" for 'b': is it the letter with an ordinal? */
static bool is_numbered(struct text_span rest, char letter)
{
	return rest.end - rest.start > 3 && rest.start[0] == letter && rest.start[1] == '_' &&
	       rest.start[2] == '_' && is_ordinal(rest.start + 3, rest.end);
}

static bool read_local(struct text_span rest, struct csharp_made *made)
{
	const char *bar;

	if (!csharp_text_starts_with(rest, "g__"))
		return false;
	bar = memrchr(rest.start, '|', (size_t)(rest.end - rest.start));
	if (!bar || bar == rest.start + 3 || !is_ordinal(bar + 1, rest.end))
		return false;
	made->name = (struct text_span){ rest.start + 3, bar };
	made->kind = CSHARP_LOCAL;
	return true;
}

/* "F0A1B2__T": the letter, a digest of the path of the file, and the name. */
static bool read_file_local(struct text_span rest, struct csharp_made *made)
{
	const char *at = rest.start + 1;

	if (rest.start == rest.end || *rest.start != 'F')
		return false;
	while (at < rest.end && is_hex(*at))
		at++;
	if (at - rest.start < 17 || rest.end - at < 3 || at[0] != '_' || at[1] != '_')
		return false;
	made->of = (struct text_span){ at + 2, rest.end };
	made->kind = CSHARP_FILE_LOCAL;
	return true;
}

static struct csharp_made read_nameless(struct text_span rest)
{
	static const char display[] = "c__DisplayClass", finally[] = "m__Finally";
	struct csharp_made made = { .kind = CSHARP_NOT_MADE };

	if (csharp_text_is(rest, "c") || is_numbered(rest, 'c') ||
	    (csharp_text_starts_with(rest, display) &&
	     is_ordinal(rest.start + sizeof(display) - 1, rest.end)))
		made.kind = CSHARP_CLOSURE;
	else if (csharp_text_starts_with(rest, finally) &&
		 skip_digits(rest.start + sizeof(finally) - 1, rest.end) == rest.end)
		made.kind = CSHARP_FINALLY;
	return made;
}

struct csharp_made csharp_made_of(struct text_span name)
{
	struct csharp_made made = { .kind = CSHARP_NOT_MADE };
	struct text_span rest = { NULL, name.end };

	if (name.start == name.end || *name.start != '<')
		return made;
	rest.start = csharp_text_skip_brackets(name.start, name.end);
	if (rest.start[-1] != '>' || rest.start - name.start < 2)
		return made;
	made.of = (struct text_span){ name.start + 1, rest.start - 1 };
	if (made.of.start == made.of.end)
		return read_nameless(rest);
	if (csharp_text_is(rest, "d") || is_numbered(rest, 'd'))
		made.kind = CSHARP_STATE_MACHINE;
	else if (is_numbered(rest, 'b'))
		made.kind = CSHARP_LAMBDA;
	else if (csharp_text_is(made.of, "Main") && csharp_text_is(rest, "$"))
		made.kind = CSHARP_TOP_LEVEL;
	else if (csharp_text_is(made.of, "Main") && rest.start == rest.end)
		made.kind = CSHARP_ENTRY_POINT;
	else if (csharp_text_is(made.of, "Clone") && csharp_text_is(rest, "$"))
		made.kind = CSHARP_CLONE;
	else if (csharp_text_is(made.of, "G") && csharp_text_starts_with(rest, "$"))
		made.kind = CSHARP_EXTENSION;
	else if (!read_local(rest, &made) && !read_file_local(rest, &made))
		made.kind = CSHARP_NOT_MADE;
	return made;
}
