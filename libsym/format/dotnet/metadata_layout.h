/* SPDX-License-Identifier: MIT */
/*
 * The layout that the metadata of a module (metadata.h) and a portable PDB (portable_pdb.h) share.
 *
 *   root: 'BSJB', version string, stream headers {offset, size, name}
 *   "#~": heap sizes, bit set of present tables, their row counts, the rows
 *   a column is a number, or refers to a row or to a heap; the width of a reference depends on how
 *   many rows the table has, or on the size of the heap
 * ECMA-335 II.22 (tables), II.24.2 (layout).
 */
#ifndef LIBSYM_FORMAT_DOTNET_METADATA_LAYOUT_H
#define LIBSYM_FORMAT_DOTNET_METADATA_LAYOUT_H

#include "libsym/base/reader.h"
#include "libsym/format/dotnet/metadata.h"

enum {
	METADATA_MOST_COLUMNS = 9,
	METADATA_NO_TABLE = 0xff,
};

/* Kinds of columns. A smaller number is an index into that table; COLUMN_CODED + kind is a coded
 * index. */
enum metadata_column {
	COLUMN_CODED = 0x40,
	COLUMN_1 = 0x60, /* number of bytes */
	COLUMN_2,
	COLUMN_4,
	COLUMN_8,
	COLUMN_STRING,
	COLUMN_GUID,
	COLUMN_BLOB,
	COLUMN_END,
};

/* An index into one of several tables. */
struct metadata_coded {
	uint8_t tag_bits;
	uint8_t count;
	uint8_t tables[27];
};

/* A row with METADATA_MOST_COLUMNS columns has no COLUMN_END. */
typedef uint8_t metadata_columns[METADATA_MOST_COLUMNS + 1];

struct metadata_rows {
	const uint8_t *rows;
	uint32_t row_count;
	uint32_t row_bytes;
	struct {
		uint8_t offset, width_bytes;
	} columns[METADATA_MOST_COLUMNS];
};

struct metadata_tables {
	uint8_t heap_sizes;
	struct metadata_rows items[METADATA_TABLE_COUNT];
};

/* Without data: the stream is missing. */
struct metadata_streams {
	struct metadata_blob tables, strings, guids, blobs, pdb;
};

/* Finds the streams of the root at the reader. Returns NULL, or a static text: what is wrong. The
 * caller also checks the reader. */
const char *metadata_find_streams(struct reader *reader, struct metadata_streams *ret);

/* Reads the row counts of the tables in the bit set `present`, which must be in [first, end).
 * Failures are those of metadata_find_streams(). */
const char *metadata_read_row_counts(struct metadata_tables *tables, struct reader *reader,
				     uint64_t present, unsigned int first, unsigned int end);

/*
 * Reads "#~": the tables in [first, end), whose columns are those of `schema`, which begins with
 * the table `first`. Failures are those of metadata_find_streams().
 */
const char *metadata_read_tables(struct metadata_tables *tables, struct reader *reader,
				 const metadata_columns *schema, const struct metadata_coded *coded,
				 unsigned int first, unsigned int end);

/* The value of a column; 0 if the row does not exist. */
static inline uint32_t metadata_cell(const struct metadata_rows *table, uint32_t rid,
				     unsigned int column)
{
	const uint8_t *bytes;

	if (rid - 1 >= table->row_count)
		return 0;
	bytes = table->rows + (size_t)(rid - 1) * table->row_bytes + table->columns[column].offset;
	if (table->columns[column].width_bytes == 2)
		return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

#endif
