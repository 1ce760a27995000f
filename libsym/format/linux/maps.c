/* SPDX-License-Identifier: MIT */
#include "libsym/format/linux/maps.h"

#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/libsym.h"

static const char deleted_mark[] = " (deleted)";

void maps_parser_init(struct maps_parser *parser, const char *text, size_t size_bytes)
{
	/* An empty text may be NULL, and even adding 0 to NULL is undefined. */
	if (!size_bytes)
		text = "";
	*parser = (struct maps_parser){ .next = text, .end = text + size_bytes };
}

/* A cursor over one line. `text` becomes NULL at the first mismatch. */
struct field {
	const char *text;
	const char *end;
};

static uint64_t parse_hex(struct field *field, char delimiter)
{
	uint64_t value = 0;
	size_t digits;

	if (!field->text)
		return 0;
	digits = hex_read_u64(field->text, (size_t)(field->end - field->text), &value);
	field->text += digits;
	if (!digits || field->text >= field->end || *field->text != delimiter) {
		field->text = NULL;
		return 0;
	}
	field->text++;
	return value;
}

/* The inode is the only decimal number. Without a path it can end the line. */
static uint64_t parse_decimal(struct field *field)
{
	const char *start = field->text;
	uint64_t value = 0;

	for (; field->text && field->text < field->end; field->text++) {
		unsigned int digit = (unsigned int)(*field->text - '0');

		if (digit > 9)
			break;
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, digit, &value)) {
			field->text = NULL;
			return 0;
		}
	}
	if (field->text == start)
		field->text = NULL;
	return value;
}

static uint32_t parse_protection(struct field *field)
{
	static const char letters[] = "rwx";
	uint32_t protection = 0;
	unsigned int i;

	if (!field->text || field->end - field->text < 5 || field->text[4] != ' ') {
		field->text = NULL;
		return 0;
	}
	for (i = 0; i < 3; i++) {
		if (field->text[i] == letters[i])
			protection |= 1u << i;
		else if (field->text[i] != '-')
			field->text = NULL;
		if (!field->text)
			return 0;
	}
	if (field->text[3] == 's')
		protection |= SYM_SHARED;
	field->text += 5;
	return protection;
}

/* The kernel pads the path to a column. */
static const char *skip_spaces(const char *text, const char *end)
{
	while (end - text >= 8 && !memcmp(text, "        ", 8))
		text += 8;
	while (text < end && *text == ' ')
		text++;
	return text;
}

static bool parse_line(const char *text, const char *end, struct maps_line *ret)
{
	struct field field = { text, end };
	const size_t mark_bytes = sizeof(deleted_mark) - 1;

	ret->start_address = parse_hex(&field, '-');
	ret->end_address = parse_hex(&field, ' ');
	ret->protection = parse_protection(&field);
	ret->offset = parse_hex(&field, ' ');
	ret->device_major = (uint32_t)parse_hex(&field, ':');
	ret->device_minor = (uint32_t)parse_hex(&field, ' ');
	ret->inode = parse_decimal(&field);
	if (!field.text || ret->start_address >= ret->end_address)
		return false;
	ret->path = skip_spaces(field.text, end);
	ret->path_bytes = (size_t)(end - ret->path);
	ret->deleted =
		ret->path_bytes > mark_bytes && !memcmp(end - mark_bytes, deleted_mark, mark_bytes);
	if (ret->deleted)
		ret->path_bytes -= mark_bytes;
	return true;
}

bool maps_parser_next(struct maps_parser *parser, struct maps_line *ret)
{
	while (parser->next < parser->end) {
		const char *line = parser->next;
		const char *end = memchr(line, '\n', (size_t)(parser->end - line));

		if (!end)
			end = parser->end;
		parser->next = end < parser->end ? end + 1 : end;
		if (parse_line(line, end, ret))
			return true;
		if (line < end)
			parser->bad_lines++;
	}
	return false;
}

/* The kernel escapes only newlines, as \012; a backslash is not escaped. */
size_t maps_unescape_path(const char *path, size_t path_bytes, char *room)
{
	static const char newline[] = "\\012";
	const size_t newline_bytes = sizeof(newline) - 1;
	const char *end = path + path_bytes, *next;
	char *to = room;

	for (; path < end; path = next) {
		next = memmem(path, (size_t)(end - path), newline, newline_bytes);
		if (!next)
			next = end;
		to = mempcpy(to, path, (size_t)(next - path));
		if (next < end) {
			*to++ = '\n';
			next += newline_bytes;
		}
	}
	*to = '\0';
	return (size_t)(to - room);
}
