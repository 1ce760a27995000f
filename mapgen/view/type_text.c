/* SPDX-License-Identifier: MIT */
#include "mapgen/view/type_text.h"

#include <stdbool.h>
#include <string.h>

enum {
	MOST_DEPTH = 16,
};

static const char *word_of(const char *name, size_t length)
{
	static const char *const words[][2] = {
		{ "System.Byte", "byte" },       { "System.SByte", "sbyte" },
		{ "System.Char", "char" },       { "System.String", "string" },
		{ "System.Object", "object" },   { "System.Boolean", "bool" },
		{ "System.Int16", "short" },     { "System.UInt16", "ushort" },
		{ "System.Int32", "int" },       { "System.UInt32", "uint" },
		{ "System.Int64", "long" },      { "System.UInt64", "ulong" },
		{ "System.Single", "float" },    { "System.Double", "double" },
		{ "System.Decimal", "decimal" },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strlen(words[i][0]) == length && !strncmp(words[i][0], name, length))
			return words[i][1];
	return NULL;
}

static void append_plain(struct buf *text, const char *name, size_t length)
{
	const char *word = word_of(name, length), *begin = name;

	if (word) {
		buf_append_string(text, word);
		return;
	}
	for (const char *c = name; c < name + length; c++)
		if (*c == '.' && c > name)
			begin = c + 1;
	buf_append(text, begin, (size_t)(name + length - begin));
}

static bool is_array(const char *open)
{
	return open[1] == ']' || open[1] == ',' || open[1] == '*';
}

/* Reads one type; returns where it ends: at the end, a comma, or the bracket that closes it. */
static const char *append_type(struct buf *text, const char *type, unsigned int depth)
{
	size_t length = strcspn(type, "`[],");
	const char *c = type + length;

	append_plain(text, type, length);
	while (*c == '`') {
		/* The number of arguments; a nested type's name may follow. */
		c++;
		c += strspn(c, "0123456789");
		length = strcspn(c, "`[],");
		buf_append(text, c, length);
		c += length;
	}
	while (*c == '[') {
		if (is_array(c) || depth >= MOST_DEPTH) {
			length = strcspn(c, "]");
			buf_append(text, c, length + (c[length] == ']'));
			c += length + (c[length] == ']');
			continue;
		}
		buf_append_char(text, '<');
		do {
			c++;
			c = append_type(text, c, depth + 1);
			if (*c == ',')
				buf_append_string(text, ", ");
		} while (*c == ',');
		buf_append_char(text, '>');
		c += *c == ']';
	}
	return c;
}

void type_text_short(struct buf *text, const char *type)
{
	const char *end = append_type(text, type, 0);

	buf_append_string(text, end);
}
