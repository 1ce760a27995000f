/* SPDX-License-Identifier: MIT */
#include "libsym/format/relmap.h"

#include <string.h>

#include "libsym/base/hex.h"
#include "libsym/limits.h"

/* Rows from here up describe the map, not the image. */
static const uint32_t first_header_rva = 0xfffffffb;
static const size_t glued_rva_digits = 8;

void relmap_parser_init(struct relmap_parser *parser, const char *text, size_t size_bytes)
{
	/* An empty text may come as NULL, to which not even 0 may be added. */
	if (!size_bytes)
		text = "";
	*parser = (struct relmap_parser){ .next = text, .end = text + size_bytes };
}

/* "HEX " with a value of 32 bits; returns what follows, or NULL. */
static const char *take_number(const char *text, const char *end, uint32_t *ret)
{
	uint64_t value = 0;
	size_t digits = hex_read_u64(text, (size_t)(end - text), &value);

	if (!digits || value > UINT32_MAX || text + digits >= end || text[digits] != ' ')
		return NULL;
	*ret = (uint32_t)value;
	return text + digits + 1;
}

/* Where a row begins inside a name that has lost its newline: "<8 hex> <hex> "; `end` when nowhere.
 */
static const char *find_glued_row(const char *name, const char *end)
{
	const char *space = name;

	while ((space = memchr(space, ' ', (size_t)(end - space)))) {
		const char *row = space - glued_rva_digits;
		uint32_t number;
		uint64_t value = 0;

		if (row > name && hex_read_u64(row, glued_rva_digits, &value) == glued_rva_digits &&
		    take_number(space + 1, end, &number))
			return row;
		space++;
	}
	return end;
}

static void take_header_row(struct relmap_header *header, const struct relmap_row *row)
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

static bool parse_row(const char *text, const char *end, struct relmap_row *ret)
{
	const char *next = take_number(text, end, &ret->rva);

	if (next)
		next = take_number(next, end, &ret->size_bytes);
	if (!next || next == end || (size_t)(end - next) > LIMIT_NAME_BYTES)
		return false;
	ret->name = next;
	ret->name_bytes = (size_t)(end - next);
	return true;
}

bool relmap_parser_next(struct relmap_parser *parser, struct relmap_row *ret)
{
	while (parser->next < parser->end) {
		const char *line = parser->next;
		const char *newline = memchr(line, '\n', (size_t)(parser->end - line));
		const char *end = newline ? newline : parser->end;
		const char *glued;
		struct relmap_row row;

		parser->next = newline ? newline + 1 : end;
		if (end > line && end[-1] == '\r')
			end--;
		if (end == line)
			continue;
		if (!parse_row(line, end, &row)) {
			parser->bad_rows++;
			continue;
		}
		glued = find_glued_row(row.name, row.name + row.name_bytes);
		if (glued < row.name + row.name_bytes) {
			row.name_bytes = (size_t)(glued - row.name);
			parser->next = glued;
			parser->glued_rows++;
		}
		if (row.rva >= first_header_rva) {
			take_header_row(&parser->header, &row);
			continue;
		}
		parser->good_rows++;
		*ret = row;
		return true;
	}
	return false;
}

void relmap_write_row(struct buf *buf, uint32_t rva, uint32_t size_bytes, const char *name,
		      size_t name_bytes)
{
	char *room = buf_reserve(buf, name_bytes + 19);
	char *next = room;
	size_t i;

	if (!room)
		return;
	next += hex_write_u64_padded(next, rva, 8);
	*next++ = ' ';
	next += hex_write_u64(next, size_bytes);
	*next++ = ' ';
	memcpy(next, name, name_bytes);
	for (i = 0; i < name_bytes; i++)
		if ((unsigned char)next[i] < 0x20 || next[i] == 0x7f)
			next[i] = '?';
	next += name_bytes;
	*next++ = '\n';
	buf->size_bytes += (size_t)(next - room);
}

bool relmap_file_name(struct buf *buf, const char *assembly_name, const char *mvid)
{
	return buf_printf(buf, "%s.ni.{%s}.map", assembly_name, mvid);
}
