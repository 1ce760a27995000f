/* SPDX-License-Identifier: MIT */
/*
 * The metadata of one module, read in place. Opening finds the heaps, lays out
 * the rows of all tables, and inverts the two lists that names need in the
 * other direction (method to type, nested type to encloser). Knows rows, not
 * their meaning: signatures are blobs here.
 *
 *   root: 'BSJB', version string, stream headers {offset, size, name}
 *   "#~": heap sizes, bit set of present tables, their row counts, the rows
 *   "#Strings", "#GUID", "#Blob": what rows refer to by offset or number
 * ECMA-335 II.22 (tables), II.24.2 (layout).
 */
#include "libsym/format/metadata.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsym/base/hex.h"
#include "libsym/base/prefetch.h"
#include "libsym/base/reader.h"
#include "libsym/limits.h"

static const uint32_t root_magic = 0x424a5342; /* "BSJB" */

/* Kinds of columns; a table index is any smaller number (the table), a coded index COLUMN_CODED +
 * its kind. */
enum {
	COLUMN_CODED = 0x40,
	COLUMN_1 = 0x60, /* bytes */
	COLUMN_2,
	COLUMN_4,
	COLUMN_8,
	COLUMN_STRING,
	COLUMN_GUID,
	COLUMN_BLOB,
	COLUMN_END,
};

enum coded_index {
	TYPE_DEF_OR_REF,
	HAS_CONSTANT,
	HAS_CUSTOM_ATTRIBUTE,
	HAS_FIELD_MARSHAL,
	HAS_DECL_SECURITY,
	MEMBER_REF_PARENT,
	HAS_SEMANTICS,
	METHOD_DEF_OR_REF,
	MEMBER_FORWARDED,
	IMPLEMENTATION,
	CUSTOM_ATTRIBUTE_TYPE,
	RESOLUTION_SCOPE,
	TYPE_OR_METHOD_DEF,
	CODED_INDEX_COUNT,
};

#define CODED(kind) (COLUMN_CODED + (kind))
#define MAX_COLUMNS 9
#define NO_TABLE    0xff

struct coded_layout {
	uint8_t tag_bits;
	uint8_t count;
	uint8_t tables[22];
};

static const struct coded_layout coded_layouts[CODED_INDEX_COUNT] = {
	[TYPE_DEF_OR_REF] = { 2, 3, { 0x02, 0x01, 0x1b } },
	[HAS_CONSTANT] = { 2, 3, { 0x04, 0x08, 0x17 } },
	[HAS_CUSTOM_ATTRIBUTE] = { 5, 22, { 0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00,
					    0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23,
					    0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b } },
	[HAS_FIELD_MARSHAL] = { 1, 2, { 0x04, 0x08 } },
	[HAS_DECL_SECURITY] = { 2, 3, { 0x02, 0x06, 0x20 } },
	[MEMBER_REF_PARENT] = { 3, 5, { 0x02, 0x01, 0x1a, 0x06, 0x1b } },
	[HAS_SEMANTICS] = { 1, 2, { 0x14, 0x17 } },
	[METHOD_DEF_OR_REF] = { 1, 2, { 0x06, 0x0a } },
	[MEMBER_FORWARDED] = { 1, 2, { 0x04, 0x06 } },
	[IMPLEMENTATION] = { 2, 3, { 0x26, 0x23, 0x27 } },
	[CUSTOM_ATTRIBUTE_TYPE] = { 3, 5, { NO_TABLE, NO_TABLE, 0x06, 0x0a, NO_TABLE } },
	[RESOLUTION_SCOPE] = { 2, 4, { 0x00, 0x1a, 0x23, 0x01 } },
	[TYPE_OR_METHOD_DEF] = { 1, 2, { 0x02, 0x06 } },
};

/* The columns of each known table in order. COLUMN_END is left out after nine columns. */
#define COLUMNS(...)                                                                               \
	{                                                                                          \
		__VA_ARGS__, COLUMN_END,                                                           \
	}
static const uint8_t schema[METADATA_TABLE_COUNT][MAX_COLUMNS + 1] = {
	[0x00] = COLUMNS(COLUMN_2, COLUMN_STRING, COLUMN_GUID, COLUMN_GUID, COLUMN_GUID),
	[0x01] = COLUMNS(CODED(RESOLUTION_SCOPE), COLUMN_STRING, COLUMN_STRING),
	[0x02] =
		COLUMNS(COLUMN_4, COLUMN_STRING, COLUMN_STRING, CODED(TYPE_DEF_OR_REF), 0x04, 0x06),
	[0x03] = COLUMNS(0x04),
	[0x04] = COLUMNS(COLUMN_2, COLUMN_STRING, COLUMN_BLOB),
	[0x05] = COLUMNS(0x06),
	[0x06] = COLUMNS(COLUMN_4, COLUMN_2, COLUMN_2, COLUMN_STRING, COLUMN_BLOB, 0x08),
	[0x07] = COLUMNS(0x08),
	[0x08] = COLUMNS(COLUMN_2, COLUMN_2, COLUMN_STRING),
	[0x09] = COLUMNS(0x02, CODED(TYPE_DEF_OR_REF)),
	[0x0a] = COLUMNS(CODED(MEMBER_REF_PARENT), COLUMN_STRING, COLUMN_BLOB),
	[0x0b] = COLUMNS(COLUMN_2, CODED(HAS_CONSTANT), COLUMN_BLOB),
	[0x0c] = COLUMNS(CODED(HAS_CUSTOM_ATTRIBUTE), CODED(CUSTOM_ATTRIBUTE_TYPE), COLUMN_BLOB),
	[0x0d] = COLUMNS(CODED(HAS_FIELD_MARSHAL), COLUMN_BLOB),
	[0x0e] = COLUMNS(COLUMN_2, CODED(HAS_DECL_SECURITY), COLUMN_BLOB),
	[0x0f] = COLUMNS(COLUMN_2, COLUMN_4, 0x02),
	[0x10] = COLUMNS(COLUMN_4, 0x04),
	[0x11] = COLUMNS(COLUMN_BLOB),
	[0x12] = COLUMNS(0x02, 0x14),
	[0x13] = COLUMNS(0x14),
	[0x14] = COLUMNS(COLUMN_2, COLUMN_STRING, CODED(TYPE_DEF_OR_REF)),
	[0x15] = COLUMNS(0x02, 0x17),
	[0x16] = COLUMNS(0x17),
	[0x17] = COLUMNS(COLUMN_2, COLUMN_STRING, COLUMN_BLOB),
	[0x18] = COLUMNS(COLUMN_2, 0x06, CODED(HAS_SEMANTICS)),
	[0x19] = COLUMNS(0x02, CODED(METHOD_DEF_OR_REF), CODED(METHOD_DEF_OR_REF)),
	[0x1a] = COLUMNS(COLUMN_STRING),
	[0x1b] = COLUMNS(COLUMN_BLOB),
	[0x1c] = COLUMNS(COLUMN_2, CODED(MEMBER_FORWARDED), COLUMN_STRING, 0x1a),
	[0x1d] = COLUMNS(COLUMN_4, 0x04),
	[0x1e] = COLUMNS(COLUMN_4, COLUMN_4),
	[0x1f] = COLUMNS(COLUMN_4),
	[0x20] = COLUMNS(COLUMN_4, COLUMN_8, COLUMN_4, COLUMN_BLOB, COLUMN_STRING, COLUMN_STRING),
	[0x21] = COLUMNS(COLUMN_4),
	[0x22] = COLUMNS(COLUMN_4, COLUMN_4, COLUMN_4),
	[0x23] =
		COLUMNS(COLUMN_8, COLUMN_4, COLUMN_BLOB, COLUMN_STRING, COLUMN_STRING, COLUMN_BLOB),
	[0x24] = COLUMNS(COLUMN_4, 0x23),
	[0x25] = COLUMNS(COLUMN_4, COLUMN_4, COLUMN_4, 0x23),
	[0x26] = COLUMNS(COLUMN_4, COLUMN_STRING, COLUMN_BLOB),
	[0x27] = COLUMNS(COLUMN_4, COLUMN_4, COLUMN_STRING, COLUMN_STRING, CODED(IMPLEMENTATION)),
	[0x28] = COLUMNS(COLUMN_4, COLUMN_4, COLUMN_STRING, CODED(IMPLEMENTATION)),
	[0x29] = COLUMNS(0x02, 0x02),
	[0x2a] = COLUMNS(COLUMN_2, COLUMN_2, CODED(TYPE_OR_METHOD_DEF), COLUMN_STRING),
	[0x2b] = COLUMNS(CODED(METHOD_DEF_OR_REF), COLUMN_BLOB),
	[0x2c] = COLUMNS(0x2a, CODED(TYPE_DEF_OR_REF)),
};

struct column {
	uint8_t offset;
	uint8_t width_bytes;
};

struct table {
	const uint8_t *rows;
	uint32_t row_count;
	uint32_t row_bytes;
	struct column columns[MAX_COLUMNS];
};

struct metadata {
	struct metadata_blob
		strings; /* cut back to the last NUL: every offset inside is a string */
	struct metadata_blob guids;
	struct metadata_blob blobs;
	struct metadata_blob tables_stream;
	uint8_t heap_sizes;
	struct table tables[METADATA_TABLE_COUNT];
	uint32_t *method_owners; /* TypeDef rid by MethodDef rid; NULL: lists ascend, search them */
	uint32_t *enclosers;     /* TypeDef rid by TypeDef rid */
};

static struct sym_error *format_error(const char *what)
{
	return sym_error_create(SYM_ERROR_FORMAT, "not usable metadata: %s", what);
}

/* ---- opening ------------------------------------------------------------ */

static void keep_stream(struct metadata *metadata, const char *name, struct metadata_blob stream)
{
	if (!strcmp(name, "#~") || !strcmp(name, "#-"))
		metadata->tables_stream = stream;
	else if (!strcmp(name, "#Strings"))
		metadata->strings = stream;
	else if (!strcmp(name, "#GUID"))
		metadata->guids = stream;
	else if (!strcmp(name, "#Blob"))
		metadata->blobs = stream;
}

static struct sym_error *find_streams(struct metadata *metadata, struct reader *reader)
{
	uint32_t version_bytes, stream_count;

	if (reader_u32(reader) != root_magic)
		return format_error("no BSJB signature");
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
			return format_error("a stream ends beyond the metadata");
		keep_stream(metadata, name, (struct metadata_blob){ part.data, size_bytes });
		reader_skip(reader, (0 - (reader->position - name_position)) & 3);
	}
	if (!reader_ok(reader))
		return sym_error_from_reader(reader, NULL, 0, "metadata root");
	if (!metadata->tables_stream.data)
		return format_error("no table stream");
	while (metadata->strings.size_bytes &&
	       metadata->strings.data[metadata->strings.size_bytes - 1])
		metadata->strings.size_bytes--;
	return NULL;
}

static unsigned int column_width(const struct metadata *metadata, uint8_t column)
{
	const struct coded_layout *coded;

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
		return metadata->heap_sizes & 1 ? 4 : 2;
	case COLUMN_GUID:
		return metadata->heap_sizes & 2 ? 4 : 2;
	case COLUMN_BLOB:
		return metadata->heap_sizes & 4 ? 4 : 2;
	}
	if (column < COLUMN_CODED)
		return metadata->tables[column].row_count < 0x10000 ? 2 : 4;
	coded = &coded_layouts[column - COLUMN_CODED];
	for (unsigned int i = 0; i < coded->count; i++)
		if (coded->tables[i] != NO_TABLE &&
		    metadata->tables[coded->tables[i]].row_count >> (16 - coded->tag_bits))
			return 4;
	return 2;
}

static void lay_out_row(const struct metadata *metadata, struct table *table,
			const uint8_t *columns)
{
	for (unsigned int i = 0; i < MAX_COLUMNS && columns[i] != COLUMN_END; i++) {
		table->columns[i].offset = (uint8_t)table->row_bytes;
		table->columns[i].width_bytes = (uint8_t)column_width(metadata, columns[i]);
		table->row_bytes += table->columns[i].width_bytes;
	}
}

static struct sym_error *read_tables(struct metadata *metadata)
{
	struct reader reader =
		reader_over(metadata->tables_stream.data, metadata->tables_stream.size_bytes);
	uint64_t valid;

	reader_skip(&reader, 6);
	metadata->heap_sizes = reader_u8(&reader);
	reader_skip(&reader, 1);
	valid = reader_u64(&reader);
	reader_skip(&reader, 8);
	for (unsigned int i = 0; i < METADATA_TABLE_COUNT; i++) {
		if (!(valid >> i & 1))
			continue;
		if (i > 0x2c)
			return format_error("a table that ECMA-335 does not know");
		metadata->tables[i].row_count = reader_u32(&reader);
		/* Tokens have 24 bits for the row. */
		if (metadata->tables[i].row_count >> 24)
			return format_error("more rows than tokens can name");
	}
	if (metadata->heap_sizes & 0x40)
		reader_skip(&reader, 4);
	for (unsigned int i = 0; i <= 0x2c; i++) {
		struct table *table = &metadata->tables[i];

		lay_out_row(metadata, table, schema[i]);
		table->rows = reader_bytes(&reader, (size_t)table->row_count * table->row_bytes);
	}
	if (!reader_ok(&reader))
		return sym_error_from_reader(&reader, NULL, 0, "metadata tables");
	return NULL;
}

/* Value of a column; 0 when there is no such row. */
static uint32_t cell(const struct metadata *metadata, unsigned int number, uint32_t rid,
		     unsigned int column_number)
{
	const struct table *table = &metadata->tables[number];
	const struct column *column = &table->columns[column_number];
	const uint8_t *bytes;

	if (rid - 1 >= table->row_count)
		return 0;
	bytes = table->rows + (size_t)(rid - 1) * table->row_bytes + column->offset;
	if (column->width_bytes == 2)
		return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8;
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

/* Inverts TypeDef.MethodList. Lists that go backwards belong to nobody: work stays linear whatever
 * they say. */
static void invert_method_lists(struct metadata *metadata)
{
	uint32_t type_count = metadata->tables[METADATA_TYPE_DEF].row_count;
	uint32_t method_count = metadata->tables[METADATA_METHOD_DEF].row_count;
	uint32_t pointer_count = metadata->tables[METADATA_METHOD_PTR].row_count;
	uint32_t list_count = pointer_count ? pointer_count : method_count;
	uint32_t next = 1;

	for (uint32_t type = 1; type <= type_count; type++) {
		uint32_t start = cell(metadata, METADATA_TYPE_DEF, type, 5);
		uint32_t end = type < type_count ? cell(metadata, METADATA_TYPE_DEF, type + 1, 5)
						 : list_count + 1;

		if (end > list_count + 1)
			end = list_count + 1;
		for (uint32_t i = start < next ? next : start; i < end; i++) {
			uint32_t method =
				pointer_count ? cell(metadata, METADATA_METHOD_PTR, i, 0) : i;

			if (method && method <= method_count)
				metadata->method_owners[method] = type;
			next = i + 1;
		}
	}
}

/* Do the method lists of types follow one another, as compilers write them? */
static bool method_lists_ascend(const struct metadata *metadata)
{
	uint32_t type_count = metadata->tables[METADATA_TYPE_DEF].row_count, last = 1;

	if (metadata->tables[METADATA_METHOD_PTR].row_count)
		return false;
	for (uint32_t type = 1; type <= type_count; type++) {
		uint32_t start = cell(metadata, METADATA_TYPE_DEF, type, 5);

		if (start < last)
			return false;
		last = start;
	}
	return last <= metadata->tables[METADATA_METHOD_DEF].row_count + 1;
}

static struct sym_error *invert_lists(struct metadata *metadata, bool is_lean)
{
	size_t type_count = metadata->tables[METADATA_TYPE_DEF].row_count;
	size_t method_count = metadata->tables[METADATA_METHOD_DEF].row_count;

	metadata->enclosers = calloc(type_count + 1, sizeof(*metadata->enclosers));
	if (!metadata->enclosers)
		return &sym_error_no_memory;
	if (!is_lean || !method_lists_ascend(metadata)) {
		metadata->method_owners =
			calloc(method_count + 1, sizeof(*metadata->method_owners));
		if (!metadata->method_owners)
			return &sym_error_no_memory;
		invert_method_lists(metadata);
	}
	for (uint32_t row = 1; row <= metadata->tables[METADATA_NESTED_CLASS].row_count; row++) {
		uint32_t nested = cell(metadata, METADATA_NESTED_CLASS, row, 0);
		uint32_t encloser = cell(metadata, METADATA_NESTED_CLASS, row, 1);

		if (nested <= type_count && encloser <= type_count)
			metadata->enclosers[nested] = encloser;
	}
	return NULL;
}

static struct sym_error *open_as(const void *data, size_t size_bytes, bool is_lean,
				 struct metadata **ret)
{
	struct reader reader = reader_over(data, size_bytes);
	AUTO_METADATA struct metadata *metadata = calloc(1, sizeof(*metadata));
	struct sym_error *error;

	if (!metadata)
		return &sym_error_no_memory;
	error = find_streams(metadata, &reader);
	if (!error)
		error = read_tables(metadata);
	if (!error)
		error = invert_lists(metadata, is_lean);
	if (error)
		return error;
	*ret = STEAL(metadata);
	return NULL;
}

struct sym_error *metadata_open(const void *data, size_t size_bytes, struct metadata **ret)
{
	return open_as(data, size_bytes, false, ret);
}

struct sym_error *metadata_open_lean(const void *data, size_t size_bytes, struct metadata **ret)
{
	return open_as(data, size_bytes, true, ret);
}

void metadata_close(struct metadata *metadata)
{
	if (!metadata)
		return;
	free(metadata->method_owners);
	free(metadata->enclosers);
	free(metadata);
}

/* ---- heaps ---------------------------------------------------------------- */

static const char *string_at(const struct metadata *metadata, uint32_t offset)
{
	return offset < metadata->strings.size_bytes ? (const char *)metadata->strings.data + offset
						     : "";
}

static struct metadata_blob blob_at(const struct metadata *metadata, uint32_t offset)
{
	struct metadata_blob none = { 0 };
	struct reader reader = reader_over(metadata->blobs.data, metadata->blobs.size_bytes);
	uint32_t size_bytes;
	const uint8_t *bytes;

	/* Most are of less than 128 bytes. */
	if (offset < metadata->blobs.size_bytes) {
		bytes = metadata->blobs.data + offset;
		if (*bytes < 0x80 && *bytes < metadata->blobs.size_bytes - offset)
			return (struct metadata_blob){ bytes + 1, *bytes };
	}
	reader_seek(&reader, offset);
	size_bytes = reader_u8(&reader);
	if ((size_bytes & 0xc0) == 0x80)
		size_bytes = (size_bytes & 0x3f) << 8 | reader_u8(&reader);
	else if ((size_bytes & 0xe0) == 0xc0) {
		size_bytes = (size_bytes & 0x1f) << 8 | reader_u8(&reader);
		size_bytes = size_bytes << 8 | reader_u8(&reader);
		size_bytes = size_bytes << 8 | reader_u8(&reader);
	} else if (size_bytes & 0x80) {
		return none;
	}
	bytes = reader_bytes(&reader, size_bytes);
	return bytes ? (struct metadata_blob){ bytes, size_bytes } : none;
}

static const char *string_cell(const struct metadata *metadata, unsigned int table, uint32_t rid,
			       unsigned int column)
{
	return string_at(metadata, cell(metadata, table, rid, column));
}

static struct metadata_blob blob_cell(const struct metadata *metadata, unsigned int table,
				      uint32_t rid, unsigned int column)
{
	if (rid - 1 >= metadata->tables[table].row_count)
		return (struct metadata_blob){ 0 };
	return blob_at(metadata, cell(metadata, table, rid, column));
}

/* Splits a coded index into table and rid; rid 0 when the tag means nothing or the row does not
 * exist. */
static uint32_t coded_cell(const struct metadata *metadata, unsigned int table, uint32_t rid,
			   unsigned int column, enum coded_index kind,
			   enum metadata_table *table_ret)
{
	const struct coded_layout *coded = &coded_layouts[kind];
	uint32_t value = cell(metadata, table, rid, column);
	uint32_t tag = value & ((1u << coded->tag_bits) - 1);
	uint32_t row = value >> coded->tag_bits;

	if (tag >= coded->count || coded->tables[tag] == NO_TABLE ||
	    row > metadata->tables[coded->tables[tag]].row_count) {
		*table_ret = METADATA_MODULE;
		return 0;
	}
	*table_ret = (enum metadata_table)coded->tables[tag];
	return row;
}

/* ---- rows ----------------------------------------------------------------- */

uint32_t metadata_row_count(const struct metadata *metadata, enum metadata_table table)
{
	return metadata->tables[table].row_count;
}

bool metadata_mvid(const struct metadata *metadata, uint8_t ret[16])
{
	uint32_t number = cell(metadata, METADATA_MODULE, 1, 2);

	if (!number || number > metadata->guids.size_bytes / 16)
		return false;
	memcpy(ret, metadata->guids.data + (size_t)(number - 1) * 16, 16);
	return true;
}

const char *metadata_assembly_name(const struct metadata *metadata)
{
	return string_cell(metadata, METADATA_ASSEMBLY, 1, 4);
}

const char *metadata_assembly_ref_name(const struct metadata *metadata, uint32_t rid)
{
	return string_cell(metadata, METADATA_ASSEMBLY_REF, rid, 3);
}

uint32_t metadata_find_assembly_ref(const struct metadata *metadata, const char *name)
{
	for (uint32_t rid = 1; rid <= metadata->tables[METADATA_ASSEMBLY_REF].row_count; rid++)
		if (!strcasecmp(metadata_assembly_ref_name(metadata, rid), name))
			return rid;
	return 0;
}

const char *metadata_module_ref_name(const struct metadata *metadata, uint32_t rid)
{
	return string_cell(metadata, METADATA_MODULE_REF, rid, 0);
}

const char *metadata_type_def_name(const struct metadata *metadata, uint32_t rid)
{
	return string_cell(metadata, METADATA_TYPE_DEF, rid, 1);
}

const char *metadata_type_def_namespace(const struct metadata *metadata, uint32_t rid)
{
	return string_cell(metadata, METADATA_TYPE_DEF, rid, 2);
}

uint32_t metadata_type_def_encloser(const struct metadata *metadata, uint32_t rid)
{
	return rid <= metadata->tables[METADATA_TYPE_DEF].row_count ? metadata->enclosers[rid] : 0;
}

const char *metadata_type_ref_name(const struct metadata *metadata, uint32_t rid)
{
	return string_cell(metadata, METADATA_TYPE_REF, rid, 1);
}

const char *metadata_type_ref_namespace(const struct metadata *metadata, uint32_t rid)
{
	return string_cell(metadata, METADATA_TYPE_REF, rid, 2);
}

uint32_t metadata_type_ref_scope(const struct metadata *metadata, uint32_t rid,
				 enum metadata_table *table_ret)
{
	return coded_cell(metadata, METADATA_TYPE_REF, rid, 0, RESOLUTION_SCOPE, table_ret);
}

struct metadata_blob metadata_type_spec_signature(const struct metadata *metadata, uint32_t rid)
{
	return blob_cell(metadata, METADATA_TYPE_SPEC, rid, 0);
}

const char *metadata_method_name(const struct metadata *metadata, uint32_t rid)
{
	return string_cell(metadata, METADATA_METHOD_DEF, rid, 3);
}

struct metadata_blob metadata_method_signature(const struct metadata *metadata, uint32_t rid)
{
	return blob_cell(metadata, METADATA_METHOD_DEF, rid, 4);
}

uint32_t metadata_method_rva(const struct metadata *metadata, uint32_t rid)
{
	return cell(metadata, METADATA_METHOD_DEF, rid, 0);
}

uint16_t metadata_method_impl_flags(const struct metadata *metadata, uint32_t rid)
{
	return (uint16_t)cell(metadata, METADATA_METHOD_DEF, rid, 1);
}

static void prefetch_row(const struct table *table, uint32_t rid)
{
	if (rid - 1 < table->row_count)
		prefetch(table->rows + (size_t)(rid - 1) * table->row_bytes);
}

void metadata_prefetch_method(const struct metadata *metadata, uint32_t type_rid, uint32_t rid)
{
	prefetch_row(&metadata->tables[METADATA_METHOD_DEF], rid);
	prefetch_row(&metadata->tables[METADATA_TYPE_DEF], type_rid);
}

/* The last type whose list does not begin behind a method. */
static uint32_t search_owner(const struct metadata *metadata, uint32_t rid)
{
	uint32_t low = 0, high = metadata->tables[METADATA_TYPE_DEF].row_count;

	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;

		if (cell(metadata, METADATA_TYPE_DEF, middle, 5) <= rid)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

uint32_t metadata_method_owner(const struct metadata *metadata, uint32_t rid)
{
	if (!rid || rid > metadata->tables[METADATA_METHOD_DEF].row_count)
		return 0;
	return metadata->method_owners ? metadata->method_owners[rid] : search_owner(metadata, rid);
}

bool metadata_type_owns_method(const struct metadata *metadata, uint32_t type_rid, uint32_t rid)
{
	const struct table *types = &metadata->tables[METADATA_TYPE_DEF];

	if (!rid || rid > metadata->tables[METADATA_METHOD_DEF].row_count || !type_rid ||
	    type_rid > types->row_count)
		return false;
	if (metadata->method_owners)
		return metadata->method_owners[rid] == type_rid;
	return cell(metadata, METADATA_TYPE_DEF, type_rid, 5) <= rid &&
	       (type_rid == types->row_count ||
		rid < cell(metadata, METADATA_TYPE_DEF, type_rid + 1, 5));
}

uint32_t metadata_first_method(const struct metadata *metadata, uint32_t type_rid)
{
	uint32_t rid = cell(metadata, METADATA_TYPE_DEF, type_rid, 5);

	/* With method pointers the methods of a type need not follow one another. */
	if (metadata->tables[METADATA_METHOD_PTR].row_count)
		return 0;
	return rid && metadata_method_owner(metadata, rid) == type_rid ? rid : 0;
}

const char *metadata_member_ref_name(const struct metadata *metadata, uint32_t rid)
{
	return string_cell(metadata, METADATA_MEMBER_REF, rid, 1);
}

struct metadata_blob metadata_member_ref_signature(const struct metadata *metadata, uint32_t rid)
{
	return blob_cell(metadata, METADATA_MEMBER_REF, rid, 2);
}

uint32_t metadata_member_ref_parent(const struct metadata *metadata, uint32_t rid,
				    enum metadata_table *table_ret)
{
	return coded_cell(metadata, METADATA_MEMBER_REF, rid, 0, MEMBER_REF_PARENT, table_ret);
}

void metadata_format_guid(const uint8_t guid[16], char room[37])
{
	/* The first three fields are little-endian numbers, the rest is bytes in order. */
	static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	uint8_t bytes[16];
	char digits[33];
	size_t length = 0;

	for (unsigned int i = 0; i < 16; i++)
		bytes[i] = guid[order[i]];
	hex_write_bytes(digits, bytes, sizeof(bytes));
	for (unsigned int i = 0; i < 32; i++) {
		if (i == 8 || i == 12 || i == 16 || i == 20)
			room[length++] = '-';
		room[length++] = digits[i];
	}
	room[length] = '\0';
}
