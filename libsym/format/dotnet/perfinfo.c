/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/perfinfo.h"

#include <string.h>

#include "libsym/base/hex.h"

static const char command[] = "ImageLoad;";

void perfinfo_parser_init(struct perfinfo_parser *parser, const char *text, size_t size_bytes)
{
	/* An empty text may be NULL, and even adding 0 to NULL is undefined. */
	if (!size_bytes)
		text = "";
	*parser = (struct perfinfo_parser){ .next = text, .end = text + size_bytes };
}

/* The last field of [start, *end), which ends with ';'. Moves *end to the start of the field, after
 * the ';' before it. NULL if there is none. */
static const char *parse_last_field(const char *start, const char **end, size_t *bytes_ret)
{
	const char *last = *end - 1, *field;

	if (*end == start || *last != ';')
		return NULL;
	for (field = last; field > start && field[-1] != ';'; field--)
		;
	if (field == start)
		return NULL;
	*bytes_ret = (size_t)(last - field);
	*end = field;
	return field;
}

static bool read_mvid(const char *field, size_t bytes, struct perfinfo_line *ret)
{
	if (bytes != PERFINFO_MVID_CHARACTERS + 2 || field[0] != '{' || field[bytes - 1] != '}')
		return false;
	for (size_t i = 0; i < PERFINFO_MVID_CHARACTERS; i++) {
		unsigned char byte = (unsigned char)field[i + 1];
		bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (is_dash ? byte != '-' : hex_values[byte] < 0)
			return false;
		if (byte >= 'A' && byte <= 'F')
			byte = (unsigned char)(byte - 'A' + 'a');
		ret->mvid[i] = (char)byte;
	}
	ret->mvid[PERFINFO_MVID_CHARACTERS] = '\0';
	return true;
}

static bool read_base(const char *field, size_t bytes, struct perfinfo_line *ret)
{
	uint64_t base = 0;

	if (bytes == 5 && !memcmp(field, "(nil)", 5)) {
		ret->has_base = false;
		return true;
	}
	if (bytes > 2 && field[0] == '0' && (field[1] == 'x' || field[1] == 'X')) {
		field += 2;
		bytes -= 2;
	}
	if (!bytes || hex_read_u64(field, bytes, &base) != bytes)
		return false;
	ret->has_base = base != 0;
	ret->base_address = base;
	return true;
}

static bool parse_line(const char *start, const char *end, struct perfinfo_line *ret)
{
	size_t command_bytes = sizeof(command) - 1, field_bytes;
	const char *field;

	*ret = (struct perfinfo_line){ 0 };
	if ((size_t)(end - start) < command_bytes || memcmp(start, command, command_bytes))
		return false;
	start += command_bytes;
	field = parse_last_field(start, &end, &field_bytes);
	if (!field)
		return false;
	if (!read_mvid(field, field_bytes, ret)) {
		if (!read_base(field, field_bytes, ret))
			return false;
		field = parse_last_field(start, &end, &field_bytes);
		if (!field || !read_mvid(field, field_bytes, ret))
			return false;
	}
	/* The path and the ';' after it remain. */
	if (end - start < 2)
		return false;
	ret->path = start;
	ret->path_bytes = (size_t)(end - 1 - start);
	return true;
}

bool perfinfo_parser_next(struct perfinfo_parser *parser, struct perfinfo_line *ret)
{
	while (parser->next < parser->end) {
		const char *line = parser->next;
		const char *newline = memchr(line, '\n', (size_t)(parser->end - line));

		if (!newline) {
			parser->next = parser->end;
			return false;
		}
		parser->next = newline + 1;
		if (parse_line(line, newline, ret)) {
			parser->good_lines++;
			return true;
		}
		parser->bad_lines += newline > line;
	}
	return false;
}
