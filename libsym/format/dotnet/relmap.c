/* SPDX-License-Identifier: MIT */
/*
 * Reads a relative map row by row. A row ends at its newline, or inside its name where another row
 * is joined on (relmap.h): find_joined_row() looks for digits that can be an rva and a size, after
 * the first non-ASCII byte. `newline` of the parser then keeps the position of the line's end for
 * the joined rows. Header rows are recorded in the header; all other rows are returned.
 */
#include "libsym/format/dotnet/relmap.h"

#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/base/utf8.h"
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
	size_t digits = hex_read_u64(row->name, row->name_bytes, &value);

	switch (row->rva) {
	case 0xffffffff:
		header->has_signature =
			row->name_bytes == 2 * sizeof(header->signature) &&
			hex_read_bytes(row->name, header->signature, sizeof(header->signature));
		return;
	case 0xfffffffe:
		header->has_version = digits > 0;
		header->version = (uint32_t)value;
		return;
	case 0xfffffffd:
		header->os = (uint32_t)value;
		return;
	case 0xfffffffc:
		header->architecture = (uint32_t)value;
		return;
	default:
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

static void append_name(struct buf *buf, const char *name, size_t name_bytes)
{
	if (!buf_append(buf, name, name_bytes))
		return;
	utf8_replace_controls(buf->data + buf->size_bytes - name_bytes, name_bytes);
	buf_append_char(buf, '\n');
}

void relmap_write_row(struct buf *buf, uint32_t rva, uint32_t size_bytes, const char *name,
		      size_t name_bytes)
{
	char *room = buf_reserve(buf, 2 * RVA_DIGITS + 2);
	char *next = room;

	if (!room)
		return;
	next += hex_write_u64_padded(next, rva, RVA_DIGITS);
	*next++ = ' ';
	next += hex_write_u64(next, size_bytes);
	*next++ = ' ';
	buf->size_bytes += (size_t)(next - room);
	append_name(buf, name, name_bytes);
}

/* ---- crossgen2's form ----------------------------------------------------- */

void relmap_write_crossgen2_row(struct buf *buf, uint32_t rva, uint32_t size_bytes,
				const char *name, size_t name_bytes)
{
	buf_printf(buf, "%08X %02X ", rva, size_bytes);
	append_name(buf, name, name_bytes);
}

void relmap_write_crossgen2_header(struct buf *buf, const struct relmap_header *header)
{
	if (header->has_signature) {
		buf_append_string(buf, "FFFFFFFF 00 ");
		for (size_t i = 0; i < sizeof(header->signature); i++)
			buf_printf(buf, "%02X", header->signature[i]);
		buf_append_char(buf, '\n');
	}
	buf_printf(buf, "FFFFFFFE 00 1\nFFFFFFFD 00 %u\nFFFFFFFC 00 %u\nFFFFFFFB 00 %u\n",
		   header->os, header->architecture, header->abi);
}
