/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/metadata_layout.h"

#include <string.h>

static const uint32_t root_magic = 0x424a5342; /* "BSJB" */

static void keep_stream(struct metadata_streams *streams, const char *name,
			struct metadata_blob stream)
{
	if (!strcmp(name, "#~") || !strcmp(name, "#-"))
		streams->tables = stream;
	else if (!strcmp(name, "#Strings"))
		streams->strings = stream;
	else if (!strcmp(name, "#GUID"))
		streams->guids = stream;
	else if (!strcmp(name, "#Blob"))
		streams->blobs = stream;
	else if (!strcmp(name, "#Pdb"))
		streams->pdb = stream;
}

const char *metadata_find_streams(struct reader *reader, struct metadata_streams *ret)
{
	uint32_t version_bytes, stream_count;

	if (reader_u32(reader) != root_magic)
		return "no BSJB signature";
	reader_skip(reader, 8);
	version_bytes = reader_u32(reader);
	reader_skip(reader, version_bytes);
	reader_skip(reader, 2);
	stream_count = reader_u16(reader);
	for (uint32_t i = 0; i < stream_count && reader_ok(reader); i++) {
		uint32_t offset = reader_u32(reader);
		uint32_t size_bytes = reader_u32(reader);
		size_t name_position = reader->position;
		const char *name = reader_string(reader);
		struct reader part = reader_part(reader, offset, size_bytes);

		if (!name)
			break;
		if (!reader_ok(&part))
			return "a stream ends beyond the data";
		keep_stream(ret, name, (struct metadata_blob){ part.data, size_bytes });
		reader_skip(reader, (0 - (reader->position - name_position)) & 3);
	}
	return NULL;
}

const char *metadata_read_row_counts(struct metadata_tables *tables, struct reader *reader,
				     uint64_t present, unsigned int first, unsigned int end)
{
	for (unsigned int i = 0; i < METADATA_TABLE_COUNT; i++) {
		if (!(present >> i & 1))
			continue;
		if (i < first || i >= end)
			return "a table that the format does not know";
		tables->items[i].row_count = reader_u32(reader);
		/* A token has 24 bits for the row. */
		if (tables->items[i].row_count >> 24)
			return "more rows than tokens can name";
	}
	return NULL;
}

static unsigned int column_width(const struct metadata_tables *tables,
				 const struct metadata_coded *coded, uint8_t column)
{
	switch (column) {
	case COLUMN_1:
		return 1;
	case COLUMN_2:
		return 2;
	case COLUMN_4:
		return 4;
	case COLUMN_8:
		return 8;
	case COLUMN_STRING:
		return tables->heap_sizes & 1 ? 4 : 2;
	case COLUMN_GUID:
		return tables->heap_sizes & 2 ? 4 : 2;
	case COLUMN_BLOB:
		return tables->heap_sizes & 4 ? 4 : 2;
	}
	if (column < COLUMN_CODED)
		return tables->items[column].row_count < 0x10000 ? 2 : 4;
	coded += column - COLUMN_CODED;
	for (unsigned int i = 0; i < coded->count; i++)
		if (coded->tables[i] != METADATA_NO_TABLE &&
		    tables->items[coded->tables[i]].row_count >> (16 - coded->tag_bits))
			return 4;
	return 2;
}

static void lay_out_row(const struct metadata_tables *tables, const struct metadata_coded *coded,
			const uint8_t *columns, struct metadata_rows *table)
{
	for (unsigned int i = 0; i < METADATA_MOST_COLUMNS && columns[i] != COLUMN_END; i++) {
		table->columns[i].offset = (uint8_t)table->row_bytes;
		table->columns[i].width_bytes = (uint8_t)column_width(tables, coded, columns[i]);
		table->row_bytes += table->columns[i].width_bytes;
	}
}

const char *metadata_read_tables(struct metadata_tables *tables, struct reader *reader,
				 const metadata_columns *schema, const struct metadata_coded *coded,
				 unsigned int first, unsigned int end)
{
	const char *failure;
	uint64_t present;

	reader_skip(reader, 6);
	tables->heap_sizes = reader_u8(reader);
	reader_skip(reader, 1);
	present = reader_u64(reader);
	reader_skip(reader, 8);
	failure = metadata_read_row_counts(tables, reader, present, first, end);
	if (failure)
		return failure;
	if (tables->heap_sizes & 0x40)
		reader_skip(reader, 4);
	for (unsigned int i = first; i < end; i++) {
		struct metadata_rows *table = &tables->items[i];

		lay_out_row(tables, coded, schema[i - first], table);
		table->rows = reader_bytes(reader, (size_t)table->row_count * table->row_bytes);
	}
	return NULL;
}
