/* SPDX-License-Identifier: MIT */
#include "libsym/format/linux/kallsyms.h"

#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/limits.h"

static bool parse_module(const char *text, const char *end, struct kallsyms_line *ret)
{
	ret->module = NULL;
	ret->module_bytes = 0;
	if (text == end)
		return true;
	if (end - text < 4 || text[0] != '\t' || text[1] != '[' || end[-1] != ']')
		return false;
	ret->module = text + 2;
	ret->module_bytes = (size_t)(end - 1 - ret->module);
	return true;
}

static bool parse_line(const char *text, const char *end, struct kallsyms_line *ret)
{
	size_t digits = hex_read_u64(text, (size_t)(end - text), &ret->address);
	const char *tab;

	text += digits;
	if (!digits || end - text < 4 || text[0] != ' ' || text[2] != ' ')
		return false;
	ret->type = text[1];
	ret->name = text + 3;
	tab = memchr(ret->name, '\t', (size_t)(end - ret->name));
	ret->name_bytes = (size_t)((tab ? tab : end) - ret->name);
	return ret->name_bytes > 0 && ret->name_bytes <= LIMIT_NAME_BYTES &&
	       !memchr(ret->name, '\0', ret->name_bytes) && parse_module(tab ? tab : end, end, ret);
}

bool kallsyms_parser_next(struct kallsyms_parser *parser, struct kallsyms_line *ret)
{
	const char *newline;

	while (parser->next < parser->end &&
	       (newline = memchr(parser->next, '\n', (size_t)(parser->end - parser->next)))) {
		const char *line = parser->next;

		parser->next = newline + 1;
		if (newline == line)
			continue;
		if (parse_line(line, newline, ret))
			return true;
		parser->bad_lines++;
	}
	return false;
}

static bool begins_with(const struct kallsyms_line *line, const char *text)
{
	size_t bytes = strlen(text);

	return line->name_bytes >= bytes && !memcmp(line->name, text, bytes);
}

static bool ends_with(const struct kallsyms_line *line, const char *text)
{
	size_t bytes = strlen(text);

	return line->name_bytes >= bytes &&
	       !memcmp(line->name + line->name_bytes - bytes, text, bytes);
}

bool kallsyms_is_function(const struct kallsyms_line *line)
{
	/* In vmlinux.lds, section marks have the type of the symbol after them. */
	static const char *const marks[] = { "_text", "_stext", "_sinittext", "_einittext",
					     "_etext" };

	if (!strchr("tTwW", line->type))
		return false;
	for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++)
		if (line->name_bytes == strlen(marks[i]) && begins_with(line, marks[i]))
			return false;
	return !ends_with(line, "_text_start") && !ends_with(line, "_text_end") &&
	       !begins_with(line, ".L") && !begins_with(line, "$");
}
