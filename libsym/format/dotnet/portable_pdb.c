/* SPDX-License-Identifier: MIT */
/*
 * Reads a portable PDB in place.
 *
 * Opening finds the streams and lays out the debug tables. The widths of references depend on row
 * counts of the module, which "#Pdb" repeats. All tables must lie inside "#~"; then every row is
 * readable. Blobs are decoded when a method is looked up. Each record of a blob consumes bytes, so
 * the work is bounded by the size of the file.
 */
#include "libsym/format/dotnet/portable_pdb.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/reader.h"
#include "libsym/format/dotnet/metadata_layout.h"
#include "libsym/format/dotnet/signature.h"
#include "libsym/limits.h"

static const char windows_magic[] = "Microsoft C/C++ ";
static const char compressed_windows_magic[] = "Microsoft MSFZ ";

enum {
	METHOD_DEF = 0x06,
	DOCUMENT = 0x30,
	METHOD_DEBUG_INFORMATION,
	LOCAL_SCOPE,
	LOCAL_VARIABLE,
	LOCAL_CONSTANT,
	IMPORT_SCOPE,
	STATE_MACHINE_METHOD,
	CUSTOM_DEBUG_INFORMATION,
	TABLE_END,
	CUSTOM_TAG_BITS = 5,
	CUSTOM_TAG_MODULE = 7,
	HIDDEN_LINE = 0xfeefee,
	MAX_LINE = 0x20000000,
	MAX_COLUMN = 0x10000,
	MOST_PADDING_BYTES = 4, /* compilers write up to 4 bytes behind the rows; a row of Document
				   has 8 or more */
};

static const metadata_columns schema[TABLE_END - DOCUMENT] = {
	{ COLUMN_BLOB, COLUMN_GUID, COLUMN_BLOB, COLUMN_GUID, COLUMN_END },
	{ DOCUMENT, COLUMN_BLOB, COLUMN_END },
	{ METHOD_DEF, IMPORT_SCOPE, LOCAL_VARIABLE, LOCAL_CONSTANT, COLUMN_4, COLUMN_4,
	  COLUMN_END },
	{ COLUMN_2, COLUMN_2, COLUMN_STRING, COLUMN_END },
	{ COLUMN_STRING, COLUMN_BLOB, COLUMN_END },
	{ IMPORT_SCOPE, COLUMN_BLOB, COLUMN_END },
	{ METHOD_DEF, METHOD_DEF, COLUMN_END },
	{ COLUMN_CODED, COLUMN_GUID, COLUMN_BLOB, COLUMN_END },
};

/* HasCustomDebugInformation. */
static const struct metadata_coded custom = {
	CUSTOM_TAG_BITS, 27, { 0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e,
			       0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27,
			       0x28, 0x2a, 0x2c, 0x2b, 0x30, 0x32, 0x33, 0x34, 0x35 }
};

/* {CC110556-A091-4D38-9FEC-25AB9A351A6A} */
static const uint8_t source_link_kind[16] = {
	0x56, 0x05, 0x11, 0xcc, 0x91, 0xa0, 0x38, 0x4d,
	0x9f, 0xec, 0x25, 0xab, 0x9a, 0x35, 0x1a, 0x6a,
};

struct portable_pdb {
	struct metadata_streams streams;
	size_t id_offset;
	struct metadata_tables tables;
};

static struct sym_error *pdb_format_error(const char *what)
{
	return sym_error_create(SYM_ERROR_FORMAT, "not a usable portable PDB: %s", what);
}

/* ---- opening ------------------------------------------------------------ */

static struct sym_error *find_streams(struct portable_pdb *pdb, struct reader *reader)
{
	const char *failure = metadata_find_streams(reader, &pdb->streams);

	if (failure)
		return pdb_format_error(failure);
	if (!reader_ok(reader))
		return sym_error_from_reader(reader, NULL, 0, "portable PDB");
	if (!pdb->streams.pdb.data || !pdb->streams.tables.data)
		return pdb_format_error("it has no stream #Pdb or #~");
	return NULL;
}

static struct sym_error *read_tables(struct portable_pdb *pdb)
{
	struct reader reader = reader_over(pdb->streams.pdb.data, pdb->streams.pdb.size_bytes);
	const char *failure;
	uint64_t present;

	reader_skip(&reader, PORTABLE_PDB_ID_BYTES + 4);
	present = reader_u64(&reader);
	failure = metadata_read_row_counts(&pdb->tables, &reader, present, 0, DOCUMENT);
	if (failure || !reader_ok(&reader))
		return pdb_format_error(failure ?: "row counts of the module's tables");
	reader = reader_over(pdb->streams.tables.data, pdb->streams.tables.size_bytes);
	failure = metadata_read_tables(&pdb->tables, &reader, schema, &custom, DOCUMENT, TABLE_END);
	if (failure || !reader_ok(&reader))
		return pdb_format_error(failure ?: "the tables are larger than their stream");
	if (reader_left(&reader) > MOST_PADDING_BYTES)
		return pdb_format_error("the tables are smaller than their stream");
	return NULL;
}

static bool begins_with(const void *data, size_t size_bytes, const char *text)
{
	return size_bytes >= strlen(text) && !memcmp(data, text, strlen(text));
}

struct sym_error *portable_pdb_open(const void *data, size_t size_bytes, struct portable_pdb **ret)
{
	struct reader reader = reader_over(data, size_bytes);
	AUTO_PORTABLE_PDB struct portable_pdb *pdb = NULL;
	struct sym_error *error;

	if (begins_with(reader.data, size_bytes, windows_magic) ||
	    begins_with(reader.data, size_bytes, compressed_windows_magic))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"a Windows PDB; lines come from portable PDBs only");
	pdb = calloc(1, sizeof(*pdb));
	if (!pdb)
		return &sym_error_no_memory;
	error = find_streams(pdb, &reader);
	if (!error)
		error = read_tables(pdb);
	if (error)
		return error;
	pdb->id_offset = (size_t)(pdb->streams.pdb.data - (const uint8_t *)data);
	*ret = STEAL(pdb);
	return NULL;
}

void portable_pdb_close(struct portable_pdb *pdb)
{
	free(pdb);
}

/* ---- rows and heaps -------------------------------------------------------- */

const uint8_t *portable_pdb_id(const struct portable_pdb *pdb)
{
	return pdb->streams.pdb.data;
}

size_t portable_pdb_id_offset(const struct portable_pdb *pdb)
{
	return pdb->id_offset;
}

static uint32_t row_count(const struct portable_pdb *pdb, unsigned int table)
{
	return pdb->tables.items[table].row_count;
}

uint32_t portable_pdb_document_count(const struct portable_pdb *pdb)
{
	return row_count(pdb, DOCUMENT);
}

/* The value of a column; 0 if the row does not exist. */
static uint32_t read_cell(const struct portable_pdb *pdb, unsigned int table, uint32_t rid,
			  unsigned int column)
{
	return metadata_cell(&pdb->tables.items[table], rid, column);
}

/* A failed reader when the offset or the length lies outside the heap. */
static struct reader blob_at(const struct portable_pdb *pdb, uint32_t offset)
{
	struct reader reader = reader_over(pdb->streams.blobs.data, pdb->streams.blobs.size_bytes);
	uint32_t size_bytes;

	reader_seek(&reader, offset);
	size_bytes = signature_unsigned(&reader);
	if (!reader_ok(&reader))
		return reader;
	return reader_part(&reader, reader.position, size_bytes);
}

/* ---- sequence points -------------------------------------------------------- */

struct point_walk {
	struct reader blob;
	struct pdb_point point;
	uint32_t line, column; /* of the last point that was not hidden */
	bool has_line;         /* there was one */
	bool is_first;
};

/* `delta` may be negative. */
static uint32_t moved(struct reader *reader, uint32_t value, int32_t delta, uint32_t limit)
{
	int64_t result = (int64_t)value + delta;

	if (result < 0 || result >= limit)
		reader_fail(reader, "a line or column out of range");
	return (uint32_t)result;
}

static void read_start(struct point_walk *walk)
{
	struct reader *blob = &walk->blob;

	if (walk->has_line) {
		walk->line = moved(blob, walk->line, signature_signed(blob), MAX_LINE);
		walk->column = moved(blob, walk->column, signature_signed(blob), MAX_COLUMN);
	} else {
		walk->line = moved(blob, signature_unsigned(blob), 0, MAX_LINE);
		walk->column = moved(blob, signature_unsigned(blob), 0, MAX_COLUMN);
	}
	walk->has_line = true;
}

/* Lines and columns of a point, after its IL delta. */
static void read_span(struct point_walk *walk)
{
	struct reader *blob = &walk->blob;
	struct pdb_point *point = &walk->point;
	uint32_t lines = signature_unsigned(blob);
	int32_t columns = lines ? signature_signed(blob) : (int32_t)signature_unsigned(blob);

	point->is_hidden = !lines && !columns;
	if (point->is_hidden) {
		point->line = point->end_line = HIDDEN_LINE;
		point->column = point->end_column = 0;
		return;
	}
	read_start(walk);
	point->line = walk->line;
	point->column = walk->column;
	point->end_line = moved(blob, walk->line, (int32_t)lines, MAX_LINE);
	point->end_column = moved(blob, walk->column, columns, MAX_COLUMN);
}

/* Reads records up to the next point. Returns false at the end of the blob or on failure. */
static bool next_point(const struct portable_pdb *pdb, struct point_walk *walk)
{
	struct reader *blob = &walk->blob;

	while (reader_left(blob)) {
		uint32_t delta = signature_unsigned(blob);

		if (!delta && !walk->is_first) {
			walk->point.document = signature_unsigned(blob);
			if (walk->point.document - 1 >= row_count(pdb, DOCUMENT))
				reader_fail(blob, "a document that does not exist");
			continue;
		}
		walk->point.il_offset =
			moved(blob, walk->point.il_offset, (int32_t)delta, MAX_LINE);
		walk->is_first = false;
		read_span(walk);
		return reader_ok(blob);
	}
	return false;
}

enum pdb_outcome portable_pdb_find(const struct portable_pdb *pdb, uint32_t rid, uint32_t il_offset,
				   struct pdb_point *ret)
{
	struct point_walk walk = { .is_first = true };
	bool has_found = false;
	uint32_t offset;

	if (rid - 1 >= row_count(pdb, METHOD_DEBUG_INFORMATION))
		return PDB_NO_METHOD;
	walk.point.document = read_cell(pdb, METHOD_DEBUG_INFORMATION, rid, 0);
	offset = read_cell(pdb, METHOD_DEBUG_INFORMATION, rid, 1);
	if (!offset)
		return PDB_NO_POINTS;
	walk.blob = blob_at(pdb, offset);
	signature_unsigned(&walk.blob); /* local signature */
	if (!walk.point.document)
		walk.point.document = signature_unsigned(&walk.blob);
	if (walk.point.document - 1 >= row_count(pdb, DOCUMENT))
		reader_fail(&walk.blob, "a document that does not exist");
	while (next_point(pdb, &walk))
		if (walk.point.il_offset <= il_offset && !walk.point.is_hidden) {
			*ret = walk.point;
			has_found = true;
		}
	if (!reader_ok(&walk.blob))
		return PDB_BAD_POINTS;
	return has_found ? PDB_FOUND : PDB_NO_POINTS;
}

bool portable_pdb_write_document(const struct portable_pdb *pdb, uint32_t rid, struct buf *buf)
{
	struct reader name = blob_at(pdb, read_cell(pdb, DOCUMENT, rid, 0));
	char separator = (char)reader_u8(&name);
	size_t start = buf->size_bytes;

	if (!rid || rid > row_count(pdb, DOCUMENT) || !reader_ok(&name))
		return false;
	for (bool is_first = true; reader_left(&name); is_first = false) {
		struct reader part = blob_at(pdb, signature_unsigned(&name));
		size_t left = reader_left(&part);

		if (!is_first && separator)
			buf_append_char(buf, separator);
		if (!reader_ok(&part) || memchr(part.data, 0, left) ||
		    buf->size_bytes - start > LIMIT_NAME_BYTES)
			return false;
		buf_append(buf, part.data, left);
	}
	return reader_ok(&name) && buf->failure == BUF_OK;
}

/* The table is sorted by its first column. */
uint32_t portable_pdb_kickoff(const struct portable_pdb *pdb, uint32_t rid)
{
	uint32_t row = (uint32_t)ASCENDING_COUNT(
		row_count(pdb, STATE_MACHINE_METHOD), i,
		read_cell(pdb, STATE_MACHINE_METHOD, (uint32_t)i + 1, 0) <= rid);

	return read_cell(pdb, STATE_MACHINE_METHOD, row, 0) == rid
		       ? read_cell(pdb, STATE_MACHINE_METHOD, row, 1)
		       : 0;
}

struct metadata_blob portable_pdb_source_link(const struct portable_pdb *pdb)
{
	const uint32_t module = 1u << CUSTOM_TAG_BITS | CUSTOM_TAG_MODULE;

	for (uint32_t rid = 1; rid <= row_count(pdb, CUSTOM_DEBUG_INFORMATION); rid++) {
		uint32_t guid = read_cell(pdb, CUSTOM_DEBUG_INFORMATION, rid, 1);
		struct reader value;

		if (read_cell(pdb, CUSTOM_DEBUG_INFORMATION, rid, 0) != module || !guid ||
		    guid > pdb->streams.guids.size_bytes / 16 ||
		    memcmp(pdb->streams.guids.data + (size_t)(guid - 1) * 16, source_link_kind,
			   16) != 0)
			continue;
		value = blob_at(pdb, read_cell(pdb, CUSTOM_DEBUG_INFORMATION, rid, 2));
		if (reader_ok(&value))
			return (struct metadata_blob){ value.data, reader_left(&value) };
	}
	return (struct metadata_blob){ 0 };
}
