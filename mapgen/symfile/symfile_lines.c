/* SPDX-License-Identifier: MIT */
/* DWARF 4, 6.2 (line numbers) and 7.5 (units). Numbers are in the byte order of the host. */
#include "mapgen/symfile/symfile_lines.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/hash.h"

enum {
	MOST_BYTES = 256 << 20,
	DWARF_VERSION = 4,
	LINE_BASE = 1, /* special opcodes are not used */
	LINE_RANGE = 1,
	OPCODE_BASE = 13,
};

struct symfile_source_file {
	uint32_t number;
	UT_hash_handle hh;
	char path[];
};

void symfile_lines_init(struct symfile_lines *lines)
{
	*lines = (struct symfile_lines){ .low = UINT64_MAX };
	buf_init(&lines->files, MOST_BYTES);
	buf_init(&lines->rows, MOST_BYTES);
}

void symfile_lines_deinit(struct symfile_lines *lines)
{
	HASH_DESTROY(lines->by_path, free);
	buf_deinit(&lines->files);
	buf_deinit(&lines->rows);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void put_unsigned(struct buf *buf, uint64_t value)
{
	while (value >= 0x80) {
		buf_append_char(buf, (char)(value | 0x80));
		value >>= 7;
	}
	buf_append_char(buf, (char)value);
}

static void put_signed(struct buf *buf, int64_t value)
{
	while (value < -64 || value >= 64) {
		buf_append_char(buf, (char)((value & 0x7f) | 0x80));
		value >>= 7;
	}
	buf_append_char(buf, (char)(value & 0x7f));
}

static void put_u32(struct buf *buf, uint32_t value)
{
	buf_append(buf, &value, sizeof(value));
}

static void put_u16(struct buf *buf, uint16_t value)
{
	buf_append(buf, &value, sizeof(value));
}

static void put_u64(struct buf *buf, uint64_t value)
{
	buf_append(buf, &value, sizeof(value));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* From 1 on; 0: out of memory. */
static uint32_t find_file(struct symfile_lines *lines, const char *path)
{
	size_t path_bytes = strlen(path);
	struct symfile_source_file *file;

	HASH_FIND(hh, lines->by_path, path, path_bytes, file);
	if (file)
		return file->number;
	file = malloc(sizeof(*file) + path_bytes + 1);
	if (!file)
		return 0;
	memcpy(file->path, path, path_bytes + 1);
	file->number = lines->file_count + 1;
	HASH_ADD_KEYPTR(hh, lines->by_path, file->path, path_bytes, file);
	if (!hash_added(file)) {
		free(file);
		return 0;
	}
	lines->file_count++;
	buf_append(&lines->files, path, path_bytes + 1);
	buf_append(&lines->files, "\0\0\0", 3); /* directory, time, size: none */
	return file->number;
}

void symfile_lines_begin(struct symfile_lines *lines, uint64_t address)
{
	lines->address = address;
	lines->file = 1;
	lines->line = 1;
	lines->column = 0;
	buf_append_char(&lines->rows, 0);
	put_unsigned(&lines->rows, 1 + sizeof(address));
	buf_append_char(&lines->rows, DW_LNE_set_address);
	put_u64(&lines->rows, address);
	if (address < lines->low)
		lines->low = address;
}

static void advance(struct symfile_lines *lines, uint64_t address)
{
	if (address == lines->address)
		return;
	buf_append_char(&lines->rows, DW_LNS_advance_pc);
	put_unsigned(&lines->rows, address - lines->address);
	lines->address = address;
}

void symfile_lines_add(struct symfile_lines *lines, uint64_t address, const char *path,
		       uint32_t line, uint32_t column)
{
	uint32_t file = path ? find_file(lines, path) : 0;

	/* Line 0 says that there is none. */
	if (!file)
		line = column = 0;
	advance(lines, address);
	if (file && file != lines->file) {
		buf_append_char(&lines->rows, DW_LNS_set_file);
		put_unsigned(&lines->rows, file);
		lines->file = file;
	}
	if (column != lines->column) {
		buf_append_char(&lines->rows, DW_LNS_set_column);
		put_unsigned(&lines->rows, column);
		lines->column = column;
	}
	if (line != lines->line) {
		buf_append_char(&lines->rows, DW_LNS_advance_line);
		put_signed(&lines->rows, (int64_t)line - lines->line);
		lines->line = line;
	}
	buf_append_char(&lines->rows, DW_LNS_copy);
}

void symfile_lines_end(struct symfile_lines *lines, uint64_t end_address)
{
	advance(lines, end_address);
	buf_append(&lines->rows, "\0\1", 2);
	buf_append_char(&lines->rows, DW_LNE_end_sequence);
	if (end_address > lines->high)
		lines->high = end_address;
}

/* ---- sections -------------------------------------------------------------------------------- */

static const uint8_t abbreviations_of_unit[] = {
	1,
	DW_TAG_compile_unit,
	DW_CHILDREN_no,
	DW_AT_name,
	DW_FORM_string,
	DW_AT_low_pc,
	DW_FORM_addr,
	DW_AT_high_pc,
	DW_FORM_data8,
	DW_AT_stmt_list,
	DW_FORM_sec_offset,
	0,
	0,
	0,
};

static void write_info(const struct symfile_lines *lines, struct buf *info)
{
	static const char name[] = "managed code";
	/* version, abbreviations, size of an address; code; name; three attributes */
	size_t bytes = 2 + 4 + 1 + 1 + sizeof(name) + 8 + 8 + 4;

	put_u32(info, (uint32_t)bytes);
	put_u16(info, DWARF_VERSION);
	put_u32(info, 0);
	buf_append_char(info, sizeof(uint64_t));
	put_unsigned(info, 1);
	buf_append(info, name, sizeof(name));
	put_u64(info, lines->low);
	put_u64(info, lines->high - lines->low);
	put_u32(info, 0);
}

static void write_program(const struct symfile_lines *lines, struct buf *program)
{
	static const uint8_t operand_counts[OPCODE_BASE - 1] = {
		0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
	};
	/* five numbers, the counts, the ends of both lists */
	size_t header = 6 + sizeof(operand_counts) + 1 + lines->files.size_bytes + 1;

	put_u32(program, (uint32_t)(2 + 4 + header + lines->rows.size_bytes));
	put_u16(program, DWARF_VERSION);
	put_u32(program, (uint32_t)header);
	buf_append_char(program, 1); /* smallest instruction */
	buf_append_char(program, 1); /* operations of one */
	buf_append_char(program, 1); /* rows are statements */
	buf_append_char(program, LINE_BASE);
	buf_append_char(program, LINE_RANGE);
	buf_append_char(program, OPCODE_BASE);
	buf_append(program, operand_counts, sizeof(operand_counts));
	buf_append_char(program, 0);
	buf_append(program, lines->files.data, lines->files.size_bytes);
	buf_append_char(program, 0);
	buf_append(program, lines->rows.data, lines->rows.size_bytes);
}

void symfile_lines_write(struct symfile_lines *lines, struct buf sections[3])
{
	if (!lines->file_count || lines->files.failure || lines->rows.failure)
		return;
	buf_append(&sections[0], abbreviations_of_unit, sizeof(abbreviations_of_unit));
	write_info(lines, &sections[1]);
	write_program(lines, &sections[2]);
}
