/* SPDX-License-Identifier: MIT */
/*
 * The metadata of one module, read in place. Opening finds the heaps, lays out the rows of all
 * tables, and inverts the two lists that names need in the other direction (method to type, nested
 * type to enclosing type). Signatures are opaque blobs here.
 *
 *   root and tables: metadata_layout.h
 *   "#Strings", "#GUID", "#Blob": what rows refer to by offset or number
 * ECMA-335 II.22 (tables), II.24.2 (layout).
 */
#include "libsym/format/dotnet/metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsym/base/hex.h"
#include "libsym/base/reader.h"
#include "libsym/format/dotnet/metadata_layout.h"
#include "libsym/format/dotnet/signature.h"

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
#define NO_TABLE    METADATA_NO_TABLE

static const struct metadata_coded coded_layouts[CODED_INDEX_COUNT] = {
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

/* The columns of each known table, in order. */
#define COLUMNS(...)                                                                               \
	{                                                                                          \
		__VA_ARGS__, COLUMN_END,                                                           \
	}
static const metadata_columns schema[] = {
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

struct metadata {
	struct metadata_streams
		streams; /* #Strings ends at the last NUL: all offsets are strings */
	struct metadata_tables tables;
	/* TypeDef rid by MethodDef rid; NULL: method lists ascend and are searched */
	uint32_t *method_owners;
	uint32_t *enclosers; /* TypeDef rid by TypeDef rid */
};

static struct sym_error *metadata_format_error(const char *what)
{
	return sym_error_create(SYM_ERROR_FORMAT, "not usable metadata: %s", what);
}

/* ---- opening ------------------------------------------------------------ */

static struct sym_error *find_streams(struct metadata *metadata, struct reader *reader)
{
	const char *failure = metadata_find_streams(reader, &metadata->streams);

	if (failure)
		return metadata_format_error(failure);
	if (!reader_ok(reader))
		return sym_error_from_reader(reader, NULL, 0, "metadata root");
	if (!metadata->streams.tables.data)
		return metadata_format_error("no table stream");
	while (metadata->streams.strings.size_bytes &&
	       metadata->streams.strings.data[metadata->streams.strings.size_bytes - 1])
		metadata->streams.strings.size_bytes--;
	return NULL;
}

static struct sym_error *read_tables(struct metadata *metadata)
{
	struct reader reader =
		reader_over(metadata->streams.tables.data, metadata->streams.tables.size_bytes);
	const char *failure =
		metadata_read_tables(&metadata->tables, &reader, schema, coded_layouts, 0,
				     sizeof(schema) / sizeof(*schema));

	if (failure)
		return metadata_format_error(failure);
	if (!reader_ok(&reader))
		return sym_error_from_reader(&reader, NULL, 0, "metadata tables");
	return NULL;
}

/* The value of a column; 0 if the row does not exist. */
static uint32_t read_cell(const struct metadata *metadata, unsigned int number, uint32_t rid,
			  unsigned int column)
{
	return metadata_cell(&metadata->tables.items[number], rid, column);
}

/*
 * Inverts TypeDef.MethodList. A list that goes backwards owns no methods, so the work stays linear.
 */
static void invert_method_lists(struct metadata *metadata)
{
	uint32_t type_count = metadata->tables.items[METADATA_TYPE_DEF].row_count;
	uint32_t method_count = metadata->tables.items[METADATA_METHOD_DEF].row_count;
	uint32_t pointer_count = metadata->tables.items[METADATA_METHOD_PTR].row_count;
	uint32_t list_count = pointer_count ? pointer_count : method_count;
	uint32_t next = 1;

	for (uint32_t type = 1; type <= type_count; type++) {
		uint32_t start = read_cell(metadata, METADATA_TYPE_DEF, type, 5);
		uint32_t end = type < type_count
				       ? read_cell(metadata, METADATA_TYPE_DEF, type + 1, 5)
				       : list_count + 1;

		if (end > list_count + 1)
			end = list_count + 1;
		for (uint32_t i = start < next ? next : start; i < end; i++) {
			uint32_t method =
				pointer_count ? read_cell(metadata, METADATA_METHOD_PTR, i, 0) : i;

			if (method && method <= method_count)
				metadata->method_owners[method] = type;
			next = i + 1;
		}
	}
}

static struct sym_error *invert_lists(struct metadata *metadata)
{
	size_t type_count = metadata->tables.items[METADATA_TYPE_DEF].row_count;
	size_t method_count = metadata->tables.items[METADATA_METHOD_DEF].row_count;

	metadata->enclosers = calloc(type_count + 1, sizeof(*metadata->enclosers));
	metadata->method_owners = calloc(method_count + 1, sizeof(*metadata->method_owners));
	if (!metadata->enclosers || !metadata->method_owners)
		return &sym_error_no_memory;
	invert_method_lists(metadata);
	for (uint32_t row = 1; row <= metadata->tables.items[METADATA_NESTED_CLASS].row_count;
	     row++) {
		uint32_t nested = read_cell(metadata, METADATA_NESTED_CLASS, row, 0);
		uint32_t encloser = read_cell(metadata, METADATA_NESTED_CLASS, row, 1);

		if (nested <= type_count && encloser <= type_count)
			metadata->enclosers[nested] = encloser;
	}
	return NULL;
}

struct sym_error *metadata_open(const void *data, size_t size_bytes, struct metadata **ret)
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
		error = invert_lists(metadata);
	if (error)
		return error;
	*ret = STEAL(metadata);
	return NULL;
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
	return offset < metadata->streams.strings.size_bytes
		       ? (const char *)metadata->streams.strings.data + offset
		       : "";
}

static struct metadata_blob blob_at(const struct metadata *metadata, uint32_t offset)
{
	struct reader reader =
		reader_over(metadata->streams.blobs.data, metadata->streams.blobs.size_bytes);
	uint32_t size_bytes;
	const uint8_t *bytes;

	reader_seek(&reader, offset);
	size_bytes = signature_unsigned(&reader);
	bytes = reader_bytes(&reader, size_bytes);
	return bytes ? (struct metadata_blob){ bytes, size_bytes } : (struct metadata_blob){ 0 };
}

static const char *read_string_cell(const struct metadata *metadata, unsigned int table,
				    uint32_t rid, unsigned int column)
{
	return string_at(metadata, read_cell(metadata, table, rid, column));
}

static struct metadata_blob read_blob_cell(const struct metadata *metadata, unsigned int table,
					   uint32_t rid, unsigned int column)
{
	if (rid - 1 >= metadata->tables.items[table].row_count)
		return (struct metadata_blob){ 0 };
	return blob_at(metadata, read_cell(metadata, table, rid, column));
}

/* Splits a coded index into table and rid. Returns rid 0 if the tag is unknown or the row does not
 * exist. */
static uint32_t read_coded_cell(const struct metadata *metadata, unsigned int table, uint32_t rid,
				unsigned int column, enum coded_index kind,
				enum metadata_table *table_ret)
{
	const struct metadata_coded *coded = &coded_layouts[kind];
	uint32_t value = read_cell(metadata, table, rid, column);
	uint32_t tag = value & ((1u << coded->tag_bits) - 1);
	uint32_t row = value >> coded->tag_bits;

	if (tag >= coded->count || coded->tables[tag] == NO_TABLE ||
	    row > metadata->tables.items[coded->tables[tag]].row_count) {
		*table_ret = METADATA_MODULE;
		return 0;
	}
	*table_ret = (enum metadata_table)coded->tables[tag];
	return row;
}

/* ---- rows ----------------------------------------------------------------- */

uint32_t metadata_row_count(const struct metadata *metadata, enum metadata_table table)
{
	return metadata->tables.items[table].row_count;
}

bool metadata_mvid(const struct metadata *metadata, uint8_t ret[16])
{
	uint32_t number = read_cell(metadata, METADATA_MODULE, 1, 2);

	if (!number || number > metadata->streams.guids.size_bytes / 16)
		return false;
	memcpy(ret, metadata->streams.guids.data + (size_t)(number - 1) * 16, 16);
	return true;
}

const char *metadata_assembly_name(const struct metadata *metadata)
{
	return read_string_cell(metadata, METADATA_ASSEMBLY, 1, 4);
}

const char *metadata_assembly_ref_name(const struct metadata *metadata, uint32_t rid)
{
	return read_string_cell(metadata, METADATA_ASSEMBLY_REF, rid, 3);
}

uint32_t metadata_find_assembly_ref(const struct metadata *metadata, const char *name)
{
	for (uint32_t rid = 1; rid <= metadata->tables.items[METADATA_ASSEMBLY_REF].row_count;
	     rid++)
		if (!strcasecmp(metadata_assembly_ref_name(metadata, rid), name))
			return rid;
	return 0;
}

const char *metadata_module_ref_name(const struct metadata *metadata, uint32_t rid)
{
	return read_string_cell(metadata, METADATA_MODULE_REF, rid, 0);
}

const char *metadata_type_def_name(const struct metadata *metadata, uint32_t rid)
{
	return read_string_cell(metadata, METADATA_TYPE_DEF, rid, 1);
}

const char *metadata_type_def_namespace(const struct metadata *metadata, uint32_t rid)
{
	return read_string_cell(metadata, METADATA_TYPE_DEF, rid, 2);
}

uint32_t metadata_type_def_encloser(const struct metadata *metadata, uint32_t rid)
{
	return rid <= metadata->tables.items[METADATA_TYPE_DEF].row_count ? metadata->enclosers[rid]
									  : 0;
}

const char *metadata_type_ref_name(const struct metadata *metadata, uint32_t rid)
{
	return read_string_cell(metadata, METADATA_TYPE_REF, rid, 1);
}

const char *metadata_type_ref_namespace(const struct metadata *metadata, uint32_t rid)
{
	return read_string_cell(metadata, METADATA_TYPE_REF, rid, 2);
}

uint32_t metadata_type_ref_scope(const struct metadata *metadata, uint32_t rid,
				 enum metadata_table *table_ret)
{
	return read_coded_cell(metadata, METADATA_TYPE_REF, rid, 0, RESOLUTION_SCOPE, table_ret);
}

struct metadata_blob metadata_type_spec_signature(const struct metadata *metadata, uint32_t rid)
{
	return read_blob_cell(metadata, METADATA_TYPE_SPEC, rid, 0);
}

const char *metadata_method_name(const struct metadata *metadata, uint32_t rid)
{
	return read_string_cell(metadata, METADATA_METHOD_DEF, rid, 3);
}

struct metadata_blob metadata_method_signature(const struct metadata *metadata, uint32_t rid)
{
	return read_blob_cell(metadata, METADATA_METHOD_DEF, rid, 4);
}

uint32_t metadata_method_rva(const struct metadata *metadata, uint32_t rid)
{
	return read_cell(metadata, METADATA_METHOD_DEF, rid, 0);
}

uint16_t metadata_method_flags(const struct metadata *metadata, uint32_t rid)
{
	return (uint16_t)read_cell(metadata, METADATA_METHOD_DEF, rid, 2);
}

uint16_t metadata_method_impl_flags(const struct metadata *metadata, uint32_t rid)
{
	return (uint16_t)read_cell(metadata, METADATA_METHOD_DEF, rid, 1);
}

uint32_t metadata_method_owner(const struct metadata *metadata, uint32_t rid)
{
	return rid <= metadata->tables.items[METADATA_METHOD_DEF].row_count
		       ? metadata->method_owners[rid]
		       : 0;
}

uint32_t metadata_first_method(const struct metadata *metadata, uint32_t type_rid)
{
	uint32_t rid = read_cell(metadata, METADATA_TYPE_DEF, type_rid, 5);

	/* With MethodPtr rows, the methods of a type need not be adjacent. */
	if (metadata->tables.items[METADATA_METHOD_PTR].row_count)
		return 0;
	return rid && metadata_method_owner(metadata, rid) == type_rid ? rid : 0;
}

const char *metadata_member_ref_name(const struct metadata *metadata, uint32_t rid)
{
	return read_string_cell(metadata, METADATA_MEMBER_REF, rid, 1);
}

struct metadata_blob metadata_member_ref_signature(const struct metadata *metadata, uint32_t rid)
{
	return read_blob_cell(metadata, METADATA_MEMBER_REF, rid, 2);
}

uint32_t metadata_member_ref_parent(const struct metadata *metadata, uint32_t rid,
				    enum metadata_table *table_ret)
{
	return read_coded_cell(metadata, METADATA_MEMBER_REF, rid, 0, MEMBER_REF_PARENT, table_ret);
}

uint32_t metadata_method_spec_method(const struct metadata *metadata, uint32_t rid,
				     enum metadata_table *table_ret)
{
	return read_coded_cell(metadata, METADATA_METHOD_SPEC, rid, 0, METHOD_DEF_OR_REF,
			       table_ret);
}

void metadata_format_guid(const uint8_t guid[16], char room[37])
{
	/* The first three fields are little-endian numbers; the rest is bytes in order. */
	struct reader reader = reader_over(guid, 16);
	uint32_t first = reader_u32(&reader);
	uint16_t second = reader_u16(&reader), third = reader_u16(&reader);

	snprintf(room, 37, "%08x-%04x-%04x-%02x%02x-", first, second, third, guid[8], guid[9]);
	hex_write_bytes(room + 24, guid + 10, 6);
}
