/* SPDX-License-Identifier: MIT */
/*
 * Splits a full method name into owner and method, as the runtime, crossgen or crossgen2 wrote it.
 * A text that does not fit the grammar (stubs, native functions) stays unchanged.
 *
 * Anchors: in the runtime's dialect the assembly stands between " [" and "] "; inside types, "[A]"
 * is followed directly by the type's name. The parameter list is the last balanced pair of
 * parentheses, because a method name can contain parentheses:
 * IEnumerable<(TFirst,TSecond)>.GetEnumerator.
 */
#include "libsym/format/dotnet/method_name.h"

#include <string.h>

static bool is_word(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
	       (unsigned char)byte >= 0x80;
}

/* Cuts off "[OptimizedTier1]" after a parameter list. */
static const char *find_end_before_tier(const char *start, const char *end)
{
	const char *position = end;

	if (position == start || position[-1] != ']')
		return end;
	for (position--; position > start && is_word(position[-1]); position--)
		;
	while (position > start && position[-1] != '[' && position[-1] != ')')
		position--;
	return position - start >= 2 && position[-1] == '[' && position[-2] == ')' ? position - 1
										   : end;
}

/* Start of the parameter list that ends at `end`; NULL if there is none. */
static const char *find_parameters(const char *start, const char *end)
{
	const char *position = end;
	size_t depth = 0;

	while (position > start) {
		position--;
		if (*position == ')')
			depth++;
		else if (*position == '(' && !--depth)
			return position;
		if (!depth)
			return NULL;
	}
	return NULL;
}

static const char *find_colons(const char *start, const char *end)
{
	return end > start ? memmem(start, (size_t)(end - start), "::", 2) : NULL;
}

/* The text after " [Assembly] "; NULL if there is no assembly. *open_ret: its bracket. */
static const char *skip_assembly(const char *start, const char *end, const char **open_ret)
{
	const char *open = NULL;

	for (const char *position = start; position < end; position++) {
		if (*position == '[')
			open = position > start && position[-1] == ' ' ? position : NULL;
		else if (*position == ']' && open && position > open + 1 && position + 1 < end &&
			 position[1] == ' ') {
			*open_ret = open;
			return position + 2;
		}
	}
	return NULL;
}

/* "Owner::Method(A,B)" in [start, end), whose owner ends at `colons`. */
static bool split_at(const char *start, const char *colons, const char *end,
		     struct method_name_parts *ret)
{
	const char *parameters = find_parameters(colons + 2, end);

	if (!parameters)
		return false;
	ret->owner = (struct text_span){ start, colons };
	ret->method = (struct text_span){ colons + 2, parameters };
	ret->parameters = (struct text_span){ parameters + 1, end - 1 };
	return true;
}

static bool parse_runtime_form(struct text_span name, struct method_name_parts *ret)
{
	const char *end = find_end_before_tier(name.start, name.end), *open;
	const char *start = skip_assembly(name.start, end, &open);
	const char *colons = start ? find_colons(start, end) : NULL;

	if (!colons || colons == start || !split_at(start, colons, end, ret))
		return false;
	ret->return_type = (struct text_span){ name.start, open - 1 };
	return true;
}

/* Has the text "Ns.Type" or "Type`1", which no native language writes? */
static bool looks_managed(const char *start, const char *end)
{
	for (const char *position = start + 1; position + 1 < end; position++)
		if (*position == '`' ||
		    (*position == '.' && position[-1] != '.' && position[-1] != ' ' &&
		     (is_word(position[1]) || position[1] == '<')))
			return true;
	return false;
}

/* Goes back from `position` to the first character after the space that ends the return type. */
static const char *find_owner_start(const char *start, const char *position)
{
	size_t depth = 0;

	for (; position > start; position--) {
		if (position[-1] == ']' || position[-1] == ')')
			depth++;
		else if ((position[-1] == '[' || position[-1] == '(') && depth)
			depth--;
		else if (position[-1] == ' ' && !depth)
			break;
	}
	return position;
}

static bool parse_crossgen2_form(struct text_span name, struct method_name_parts *ret)
{
	const char *colons = find_colons(name.start, name.end), *start;

	/* A native name can have several "::"; a managed one has exactly one. */
	if (!colons || find_colons(colons + 2, name.end) || !looks_managed(name.start, name.end))
		return false;
	start = find_owner_start(name.start, colons);
	if (start >= colons || !split_at(start, colons, name.end, ret))
		return false;
	ret->return_type =
		(struct text_span){ name.start, start > name.start ? start - 1 : name.start };
	return true;
}

bool method_name_split(const char *name, size_t name_bytes, struct method_name_parts *ret)
{
	struct text_span whole = { name, name + name_bytes };

	return parse_runtime_form(whole, ret) || parse_crossgen2_form(whole, ret);
}

size_t method_name_mark_bytes(const char *name, size_t name_bytes)
{
	static const char mark[] = "[precode] ";
	size_t size_bytes = sizeof(mark) - 1;

	return name_bytes > size_bytes && !memcmp(name, mark, size_bytes) ? size_bytes : 0;
}

size_t method_name_shorten(const char *name, size_t name_bytes, char *room, size_t room_bytes)
{
	size_t kept = method_name_mark_bytes(name, name_bytes), length, copied;
	struct text_span part = { name + kept, name + name_bytes };
	struct method_name_parts parts;

	if (method_name_split(name + kept, name_bytes - kept, &parts))
		part = (struct text_span){ parts.owner.start, parts.method.end };
	length = kept + (size_t)(part.end - part.start);
	if (room_bytes) {
		copied = length < room_bytes ? length : room_bytes - 1;
		memcpy(room, name, copied < kept ? copied : kept);
		if (copied > kept)
			memcpy(room + kept, part.start, copied - kept);
		room[copied] = '\0';
	}
	return length;
}
