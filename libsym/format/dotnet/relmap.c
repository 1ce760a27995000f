/* SPDX-License-Identifier: MIT */
/*
 * Reads a relative map row by row. A row ends at its newline, or inside its name where another row
 * is joined on (relmap.h): find_joined_row() looks for digits that can be an rva and a size, after
 * the first non-ASCII byte. `newline` of the parser then keeps the position of the line's end for
 * the joined rows. Header rows are recorded in the header; all other rows are returned.
 */
#include "libsym/format/dotnet/relmap.h"

#include <stdio.h>
#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/limits.h"

/* Rows with an rva from here on describe the map, not the image. */
static const uint32_t first_header_rva = 0xfffffffb;

enum {
	RVA_DIGITS = 8
};

void relmap_parser_init(struct relmap_parser *parser, const char *text, size_t size_bytes)
{
	/* An empty text may be NULL, and even adding 0 to NULL is undefined. */
	if (!size_bytes)
		text = "";
	*parser = (struct relmap_parser){ .next = text, .end = text + size_bytes };
}

/* Parses "HEX " with a 32-bit value. Returns the text after it, or NULL. */
static const char *parse_number(const char *text, const char *end, uint32_t *ret)
{
	uint64_t value = 0;
	size_t digits = hex_read_u64(text, (size_t)(end - text), &value);

	if (!digits || value > UINT32_MAX || text + digits >= end || text[digits] != ' ')
		return NULL;
	*ret = (uint32_t)value;
	return text + digits + 1;
}

static bool is_hex(const char *text, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (hex_values[(unsigned char)text[i]] < 0)
			return false;
	return true;
}

/* Start of the rva in front of `space`: 8 digits, or 16 as in versions up to 2.2. NULL if there is
 * none. */
static const char *find_joined_rva(const char *text, const char *space)
{
	size_t before = (size_t)(space - text);

	if (before >= 2 * RVA_DIGITS && !memcmp(space - 2 * RVA_DIGITS, "00000000", RVA_DIGITS) &&
	    is_hex(space - RVA_DIGITS, RVA_DIGITS))
		return space - 2 * RVA_DIGITS;
	return before >= RVA_DIGITS && is_hex(space - RVA_DIGITS, RVA_DIGITS) ? space - RVA_DIGITS
									      : NULL;
}

/* Where a row starts inside a name that has lost its newline; `end` if nowhere. Only names with
 * non-ASCII characters lose it, so such a byte comes first. */
static const char *find_joined_row(const char *name, const char *end)
{
	const char *space = name;

	while (space < end && (signed char)*space > 0)
		space++;
	name = space;
	while (space < end && (space = memchr(space, ' ', (size_t)(end - space)))) {
		const char *row = find_joined_rva(name, space);
		uint32_t number;

		if (row && row > name && parse_number(space + 1, end, &number))
			return row;
		space++;
	}
	return end;
}

static void record_header_row(struct relmap_header *header, const struct relmap_row *row)
{
	uint64_t value = 0;

	switch (row->rva) {
	case 0xffffffff:
		header->has_signature =
			row->name_bytes == 2 * sizeof(header->signature) &&
			hex_read_bytes(row->name, header->signature, sizeof(header->signature));
		return;
	case 0xfffffffe:
		header->has_version = hex_read_u64(row->name, row->name_bytes, &value) > 0;
		header->version = (uint32_t)value;
		return;
	case 0xfffffffd:
		hex_read_u64(row->name, row->name_bytes, &value);
		header->os = (uint32_t)value;
		return;
	case 0xfffffffc:
		hex_read_u64(row->name, row->name_bytes, &value);
		header->architecture = (uint32_t)value;
		return;
	default:
		hex_read_u64(row->name, row->name_bytes, &value);
		header->abi = (uint32_t)value;
	}
}

/* Parses the row at the front of [text, end). Its name ends there, or where another row is joined
 * on. */
static bool parse_row(const char *text, const char *end, struct relmap_row *ret)
{
	const char *next = parse_number(text, end, &ret->rva);

	if (next)
		next = parse_number(next, end, &ret->size_bytes);
	if (!next || next == end)
		return false;
	ret->name = next;
	ret->name_bytes = (size_t)(find_joined_row(next, end) - next);
	return true;
}

/* Counts a row, or records it in the header. Returns true if it is a symbol. */
static bool record_row(struct relmap_parser *parser, const struct relmap_row *row)
{
	if (row->name_bytes > LIMIT_NAME_BYTES) {
		parser->bad_rows++;
		return false;
	}
	if (row->rva >= first_header_rva) {
		record_header_row(&parser->header, row);
		return false;
	}
	parser->good_rows++;
	return true;
}

bool relmap_parser_next(struct relmap_parser *parser, struct relmap_row *ret)
{
	while (parser->next < parser->end) {
		const char *line = parser->next, *newline = parser->newline, *end;
		struct relmap_row row;

		/* Known if a row was joined on. Searching for it again each time would be
		 * quadratic. */
		if (!newline)
			newline = memchr(line, '\n', (size_t)(parser->end - line));
		if (!newline)
			newline = parser->end;
		end = newline > line && newline[-1] == '\r' ? newline - 1 : newline;
		parser->next = newline < parser->end ? newline + 1 : newline;
		parser->newline = NULL;
		if (end == line)
			continue;
		if (!parse_row(line, end, &row)) {
			parser->bad_rows++;
			continue;
		}
		if (row.name + row.name_bytes < end) {
			parser->next = row.name + row.name_bytes;
			parser->newline = newline;
			parser->joined_rows++;
		}
		if (record_row(parser, &row)) {
			*ret = row;
			return true;
		}
	}
	return false;
}

/* Reserves room for one row: two numbers, two spaces, the name and a newline. */
static char *reserve_row(struct buf *buf, size_t name_bytes)
{
	return name_bytes < SIZE_MAX - 19 ? buf_reserve(buf, name_bytes + 19) : NULL;
}

/* Writes the name and a newline; returns the end of the row. */
static char *write_name(char *next, const char *name, size_t name_bytes)
{
	memcpy(next, name, name_bytes);
	for (size_t i = 0; i < name_bytes; i++)
		if ((unsigned char)next[i] < 0x20 || next[i] == 0x7f)
			next[i] = '?';
	next += name_bytes;
	*next++ = '\n';
	return next;
}

void relmap_write_row(struct buf *buf, uint32_t rva, uint32_t size_bytes, const char *name,
		      size_t name_bytes)
{
	char *room = reserve_row(buf, name_bytes);
	char *next = room;

	if (!room)
		return;
	next += hex_write_u64_padded(next, rva, RVA_DIGITS);
	*next++ = ' ';
	next += hex_write_u64(next, size_bytes);
	*next++ = ' ';
	next = write_name(next, name, name_bytes);
	buf->size_bytes += (size_t)(next - room);
}

/* ---- crossgen2's form ----------------------------------------------------- */

static char *write_upper_hex(char *next, uint32_t value, size_t width)
{
	size_t length = hex_write_u64_padded(next, value, width);

	for (size_t i = 0; i < length; i++)
		if (next[i] >= 'a')
			next[i] = (char)(next[i] - 'a' + 'A');
	next[length] = ' ';
	return next + length + 1;
}

void relmap_write_crossgen2_row(struct buf *buf, uint32_t rva, uint32_t size_bytes,
				const char *name, size_t name_bytes)
{
	char *room = reserve_row(buf, name_bytes);
	char *next = room;

	if (!room)
		return;
	next = write_upper_hex(next, rva, RVA_DIGITS);
	next = write_upper_hex(next, size_bytes, 2);
	next = write_name(next, name, name_bytes);
	buf->size_bytes += (size_t)(next - room);
}

static void write_header_row(struct buf *buf, uint32_t row, const char *text)
{
	relmap_write_crossgen2_row(buf, row, 0, text, strlen(text));
}

static void write_header_number(struct buf *buf, uint32_t row, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	write_header_row(buf, row, text);
}

void relmap_write_crossgen2_header(struct buf *buf, const struct relmap_header *header)
{
	char signature[2 * sizeof(header->signature) + 1];

	if (header->has_signature) {
		hex_write_bytes(signature, header->signature, sizeof(header->signature));
		for (char *digit = signature; *digit; digit++)
			if (*digit >= 'a')
				*digit = (char)(*digit - 'a' + 'A');
		write_header_row(buf, 0xffffffff, signature);
	}
	write_header_number(buf, 0xfffffffe, 1);
	write_header_number(buf, 0xfffffffd, header->os);
	write_header_number(buf, 0xfffffffc, header->architecture);
	write_header_number(buf, 0xfffffffb, header->abi);
}
