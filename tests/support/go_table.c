/* SPDX-License-Identifier: MIT */
#include "tests/support/go_table.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/byte_writer.h"

const char go_table_outer[] = "inlined.Outer", go_table_inner[] = "inlined.Inner";

enum {
	MOST_FUNCTIONS = 8192,
	WORDS_1_20 = 10, /* of a function, after its start; earlier versions have fewer */
	PCDATA_COUNT = 3,
	FUNCDATA_COUNT = 4,
	ROW_BYTES_1_18 = 20,
	ROW_BYTES_1_20 = 16
};

/* Positions that a function refers to. */
struct references {
	uint32_t name, file, tables[4]; /* sp, file, line, inlining */
};

struct pieces {
	struct buf names, units, files, tables;
	struct references references[MOST_FUNCTIONS];
	uint32_t outer_name, inner_name;
};

static uint32_t put_text(struct buf *buf, const char *text)
{
	uint32_t at = (uint32_t)buf->size_bytes;

	buf_append(buf, text, strlen(text) + 1);
	return at;
}

static void put_varint(struct buf *buf, uint32_t value)
{
	while (value >= 0x80) {
		put_u8(buf, (uint8_t)(value | 0x80));
		value >>= 7;
	}
	put_u8(buf, (uint8_t)value);
}

struct step {
	int32_t value;
	uint32_t bytes;
};

static uint32_t put_table(struct buf *buf, const struct step *steps, size_t count)
{
	uint32_t at = (uint32_t)buf->size_bytes;
	int32_t last = -1;

	for (size_t i = 0; i < count; i++) {
		int32_t difference = steps[i].value - last;

		put_varint(buf, difference < 0 ? (uint32_t)(-difference * 2 - 1)
					       : (uint32_t)(difference * 2));
		put_varint(buf, steps[i].bytes);
		last = steps[i].value;
	}
	put_u8(buf, 0);
	return at;
}

static void put_pointer(struct buf *buf, unsigned int bytes, uint64_t value)
{
	if (bytes == 8)
		put_u64(buf, value);
	else
		put_u32(buf, (uint32_t)value);
}

static void write_pieces(const struct go_table *table, struct pieces *ret)
{
	buf_init(&ret->names, 1 << 22);
	buf_init(&ret->units, 1 << 20);
	buf_init(&ret->files, 1 << 22);
	buf_init(&ret->tables, 1 << 22);
	put_u8(&ret->names, 0);
	put_u8(&ret->tables, 0);
	ret->outer_name = put_text(&ret->names, go_table_outer);
	ret->inner_name = put_text(&ret->names, go_table_inner);
	for (size_t i = 0; i < table->count; i++) {
		const struct go_table_function *function = &table->functions[i];
		struct references *references = &ret->references[i];
		uint32_t quarter = function->size_bytes / 4;
		uint32_t rest = function->size_bytes - 2 * quarter;
		int32_t line = (int32_t)function->line;
		/* Since 1.16 each function is a unit here; before, the first file is 1. */
		const struct step sp[] = { { 0, 1 }, { 8, function->size_bytes - 1 } };
		const struct step file[] = { { table->version == GO_TABLE_1_2 ? (int32_t)i + 1 : 0,
					       function->size_bytes } };
		const struct step lines[] = { { line, quarter },
					      { line + 10, quarter },
					      { line + 20, rest } };
		const struct step inlined[] = { { -1, quarter }, { 0, quarter }, { 1, rest } };

		references->name = put_text(&ret->names, function->name);
		references->file = put_text(&ret->files, function->file);
		put_u32(&ret->units, references->file);
		references->tables[0] = put_table(&ret->tables, sp, 2);
		references->tables[1] = put_table(&ret->tables, file, 1);
		references->tables[2] = put_table(&ret->tables, lines, 3);
		references->tables[3] = put_table(&ret->tables, inlined, 3);
	}
}

static void put_start(const struct go_table *table, struct buf *buf, uint32_t distance)
{
	if (table->version >= GO_TABLE_1_18)
		put_u32(buf, distance);
	else
		put_pointer(buf, table->pointer_bytes, table->text_start + distance);
}

/* `names_at` and `tables_at` are 0, except in 1.2, whose offsets count from the header. */
static void put_record(const struct go_table *table, const struct pieces *pieces, size_t number,
		       uint32_t names_at, uint32_t tables_at, struct buf *ret)
{
	const struct references *references = &pieces->references[number];

	put_start(table, ret, table->functions[number].distance);
	put_u32(ret, names_at + references->name);
	put_u32(ret, 0); /* args */
	put_u32(ret, 0); /* defer */
	for (size_t i = 0; i < 3; i++)
		put_u32(ret, tables_at + references->tables[i]);
	put_u32(ret, PCDATA_COUNT);
	if (table->version >= GO_TABLE_1_16)
		put_u32(ret, (uint32_t)number);
	if (table->version >= GO_TABLE_1_20)
		put_u32(ret, table->functions[number].line);
	put_u32(ret, (uint32_t)FUNCDATA_COUNT << 24);
	put_u32(ret, 0);
	put_u32(ret, 0);
	put_u32(ret, tables_at + references->tables[3]);
	for (size_t i = 0; i + 1 < FUNCDATA_COUNT; i++)
		put_u32(ret, UINT32_MAX);
	put_u32(ret, (uint32_t)number * 2 *
			     (table->version >= GO_TABLE_1_20 ? ROW_BYTES_1_20 : ROW_BYTES_1_18));
}

static size_t start_bytes(const struct go_table *table)
{
	return table->version >= GO_TABLE_1_18 ? 4 : table->pointer_bytes;
}

static size_t record_bytes(const struct go_table *table)
{
	size_t words =
		WORDS_1_20 - (table->version < GO_TABLE_1_20) - (table->version < GO_TABLE_1_16);

	return start_bytes(table) + 4 * (words + PCDATA_COUNT + FUNCDATA_COUNT);
}

/* Rows whose records start at `records`, relative to their base. */
static void put_rows(const struct go_table *table, size_t records, struct buf *ret)
{
	for (size_t i = 0; i < table->count; i++) {
		put_start(table, ret, table->functions[i].distance);
		if (table->version >= GO_TABLE_1_18)
			put_u32(ret, (uint32_t)(records + i * record_bytes(table)));
		else
			put_pointer(ret, table->pointer_bytes, records + i * record_bytes(table));
	}
	put_start(table, ret, table->end_distance);
}

static size_t rows_bytes(const struct go_table *table)
{
	return (2 * table->count + 1) * start_bytes(table);
}

/* The header, rows, records, names, tables, file table, files. */
static void write_1_2(const struct go_table *table, const struct pieces *pieces, struct buf *ret,
		      struct go_table_layout *layout)
{
	size_t rows = 8 + table->pointer_bytes;
	size_t records = rows + rows_bytes(table) + 4;
	size_t names = records + table->count * record_bytes(table);
	size_t tables = names + pieces->names.size_bytes;
	size_t file_table = tables + pieces->tables.size_bytes;
	size_t files = file_table + 4 * (table->count + 1);

	put_pointer(ret, table->pointer_bytes, table->count);
	put_rows(table, records, ret);
	put_u32(ret, (uint32_t)file_table);
	for (size_t i = 0; i < table->count; i++)
		put_record(table, pieces, i, (uint32_t)names, (uint32_t)tables, ret);
	buf_append(ret, pieces->names.data, pieces->names.size_bytes);
	buf_append(ret, pieces->tables.data, pieces->tables.size_bytes);
	put_u32(ret, (uint32_t)table->count + 1);
	for (size_t i = 0; i < table->count; i++)
		put_u32(ret, (uint32_t)files + pieces->references[i].file);
	buf_append(ret, pieces->files.data, pieces->files.size_bytes);
	*layout = (struct go_table_layout){ .rows = rows, .first_record = records };
}

static void write_later(const struct go_table *table, const struct pieces *pieces, struct buf *ret,
			struct go_table_layout *layout)
{
	size_t words = table->version >= GO_TABLE_1_18 ? 8 : 7;
	const struct buf *parts[] = { &pieces->names, &pieces->units, &pieces->files,
				      &pieces->tables };
	size_t at = 8 + words * table->pointer_bytes;

	for (size_t i = 0; i < 4; i++) {
		layout->parts[i] = at;
		at += (parts[i]->size_bytes + 7) & ~(size_t)7;
	}
	layout->parts[4] = layout->rows = at;
	layout->first_record = at + ((rows_bytes(table) + 7) & ~(size_t)7);
	put_pointer(ret, table->pointer_bytes, table->count);
	put_pointer(ret, table->pointer_bytes, table->count);
	if (table->version >= GO_TABLE_1_18)
		put_pointer(ret, table->pointer_bytes, table->stated_text_start);
	for (size_t i = 0; i < 5; i++)
		put_pointer(ret, table->pointer_bytes, layout->parts[i]);
	for (size_t i = 0; i < 4; i++) {
		put_zeros(ret, layout->parts[i] - ret->size_bytes);
		buf_append(ret, parts[i]->data, parts[i]->size_bytes);
	}
	put_zeros(ret, layout->rows - ret->size_bytes);
	put_rows(table, layout->first_record - layout->rows, ret);
	put_zeros(ret, layout->first_record - ret->size_bytes);
	for (size_t i = 0; i < table->count; i++)
		put_record(table, pieces, i, 0, 0, ret);
}

void go_table_write(const struct go_table *table, struct buf *ret, struct go_table_layout *layout)
{
	static const uint32_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };
	struct pieces *pieces = calloc(1, sizeof(*pieces));
	struct go_table_layout own;

	if (!pieces || table->count > MOST_FUNCTIONS)
		abort();
	write_pieces(table, pieces);
	put_u32(ret, magics[table->version]);
	put_u16(ret, 0);
	put_u8(ret, 1);
	put_u8(ret, (uint8_t)table->pointer_bytes);
	if (table->version == GO_TABLE_1_2)
		write_1_2(table, pieces, ret, layout ? layout : &own);
	else
		write_later(table, pieces, ret, layout ? layout : &own);
	buf_deinit(&pieces->names);
	buf_deinit(&pieces->units);
	buf_deinit(&pieces->files);
	buf_deinit(&pieces->tables);
	free(pieces);
}

void go_table_write_inlined(const struct go_table *table, struct buf *ret)
{
	/* In the order of write_pieces(). */
	const uint32_t names[] = { 1, 1 + sizeof(go_table_outer) };

	for (size_t i = 0; i < table->count; i++)
		for (int row = 0; row < 2; row++) {
			const struct go_table_function *function = &table->functions[i];

			if (table->version < GO_TABLE_1_20) {
				put_u16(ret, (uint16_t)(row - 1));
				put_u16(ret, 0);
				put_u32(ret, 0);
				put_u32(ret, function->line + 10 * (uint32_t)row);
			} else {
				put_u32(ret, 0);
			}
			put_u32(ret, names[row]);
			put_u32(ret, row ? function->size_bytes / 4 : 0);
			if (table->version >= GO_TABLE_1_20)
				put_u32(ret, 1);
		}
}
