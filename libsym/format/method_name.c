/* SPDX-License-Identifier: MIT */
/*
 * Takes a full method name apart again: finds owner and method in what the
 * runtime, crossgen or crossgen2 wrote. Knows grammar only; a text that does
 * not fit it (stubs, native functions) is left alone.
 *
 * The anchors: in the runtime's dialect the assembly stands between " [" and
 * "] " (in types "[A]" is followed by the type's name at once); the parameter
 * list is the last balanced pair of parentheses, because method names may
 * have parentheses of their own: IEnumerable<(TFirst,TSecond)>.GetEnumerator.
 */
#include "libsym/format/method_name.h"

#include <string.h>

struct span {
	const char *start, *end;
};

static bool is_word(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
	       (unsigned char)byte >= 0x80;
}

/* Cuts "[OptimizedTier1]" off behind a parameter list. */
static const char *without_tier(const char *start, const char *end)
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

/* Start of the parameter list that ends at `end`; NULL when there is none. */
static const char *parameters(const char *start, const char *end)
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

/* Behind "[Assembly] "; NULL when there is no such thing. */
static const char *behind_assembly(const char *start, const char *end)
{
	const char *open = NULL;

	for (const char *position = start; position < end; position++) {
		if (*position == '[')
			open = position > start && position[-1] == ' ' ? position : NULL;
		else if (*position == ']' && open && position > open + 1 && position + 1 < end &&
			 position[1] == ' ')
			return position + 2;
	}
	return NULL;
}

static bool runtime_form(struct span name, struct span *ret)
{
	const char *end = without_tier(name.start, name.end);
	const char *start = behind_assembly(name.start, end);
	const char *colons = start ? find_colons(start, end) : NULL;

	if (!colons || colons == start)
		return false;
	ret->start = start;
	ret->end = parameters(colons + 2, end);
	return ret->end != NULL;
}

/* Ns.Type, Type`1: spellings that no native language's names have. */
static bool looks_managed(const char *start, const char *end)
{
	for (const char *position = start + 1; position + 1 < end; position++)
		if (*position == '`' ||
		    (*position == '.' && position[-1] != '.' && position[-1] != ' ' &&
		     (is_word(position[1]) || position[1] == '<')))
			return true;
	return false;
}

/* Back from `position` to behind the space that ends a return type. */
static const char *owner_start(const char *start, const char *position)
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

static bool crossgen2_form(struct span name, struct span *ret)
{
	const char *colons = find_colons(name.start, name.end);

	/* One "::" only: native names of several parts have more. */
	if (!colons || find_colons(colons + 2, name.end) || !looks_managed(name.start, name.end))
		return false;
	ret->start = owner_start(name.start, colons);
	ret->end = parameters(colons + 2, name.end);
	return ret->end && ret->start < colons;
}

/* What stands before the method of a precode stays there: it is not the method. */
static size_t mark_bytes(struct span name)
{
	static const char mark[] = "[precode] ";
	size_t size_bytes = sizeof(mark) - 1;

	return (size_t)(name.end - name.start) > size_bytes && !memcmp(name.start, mark, size_bytes)
		       ? size_bytes
		       : 0;
}

size_t method_name_shorten(const char *name, size_t name_bytes, char *room, size_t room_bytes)
{
	struct span whole = { name, name + name_bytes }, part;
	size_t kept = mark_bytes(whole), length, copied;

	whole.start += kept;
	part = whole;
	if (!runtime_form(whole, &part) && !crossgen2_form(whole, &part))
		part = whole;
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
