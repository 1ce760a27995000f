/* SPDX-License-Identifier: MIT */
/* Rows, heaps and the two inverted lists of small metadata, and of malformed metadata. */
#include "libsym/format/dotnet/metadata.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/alloc_fail.h"
#include "tests/support/byte_writer.h"
#include "tests/support/metadata_builder.h"

static const uint8_t mvid[16] = { 0x33, 0x22, 0x11, 0x00, 0x55, 0x44, 0x77, 0x66,
				  0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };

/* Two types, one nested; three methods; references of every kind of scope. */
static void build_sample(struct buf *out, bool wide_heaps)
{
	struct metadata_builder builder;

	metadata_builder_init(&builder);
	builder.wide_heaps = wide_heaps;
	add_module(&builder, "Sample.dll", mvid);
	add_assembly(&builder, "Sample");
	add_assembly_ref(&builder, "System.Runtime");
	add_assembly_ref(&builder, "System.Linq");
	add_module_ref(&builder, "native");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "System", "Object");
	add_type_ref(&builder, SCOPE_TYPE_REF, 1, "", "Inner");
	add_type_ref(&builder, SCOPE_MODULE_REF, 1, "N", "M");
	add_type_def(&builder, "", "<Module>");
	add_type_def(&builder, "Ns", "Outer");
	add_method(&builder, "First", "\x00\x00\x01", 3);
	add_method(&builder, "Second", "\x20\x00\x08", 3);
	add_type_def(&builder, "", "Inner");
	add_method(&builder, "Third", "\x00\x00\x0e", 3);
	add_nested(&builder, 3, 2);
	add_type_spec(&builder, "\x1d\x08", 2);
	add_member_ref(&builder, PARENT_TYPE_SPEC, 1, "Get", "\x20\x00\x08", 3);
	build_metadata(&builder, out);
	metadata_builder_deinit(&builder);
}

static void check_sample(const struct metadata *metadata)
{
	enum metadata_table table;
	uint8_t guid[16];

	cr_assert(metadata_mvid(metadata, guid));
	cr_expect(eq(int, memcmp(guid, mvid, 16), 0));
	cr_expect_str_eq(metadata_assembly_name(metadata), "Sample");
	cr_expect_str_eq(metadata_assembly_ref_name(metadata, 2), "System.Linq");
	cr_expect(eq(u32, metadata_find_assembly_ref(metadata, "system.LINQ"), 2));
	cr_expect(eq(u32, metadata_find_assembly_ref(metadata, "System"), 0));
	cr_expect_str_eq(metadata_module_ref_name(metadata, 1), "native");
	cr_expect_str_eq(metadata_type_def_name(metadata, 2), "Outer");
	cr_expect_str_eq(metadata_type_def_namespace(metadata, 2), "Ns");
	cr_expect(eq(u32, metadata_type_def_encloser(metadata, 3), 2));
	cr_expect(eq(u32, metadata_type_def_encloser(metadata, 2), 0));
	cr_expect_str_eq(metadata_type_ref_name(metadata, 1), "Object");
	cr_expect(eq(u32, metadata_type_ref_scope(metadata, 1, &table), 1));
	cr_expect(eq(int, (int)table, METADATA_ASSEMBLY_REF));
	cr_expect(eq(u32, metadata_type_ref_scope(metadata, 2, &table), 1));
	cr_expect(eq(int, (int)table, METADATA_TYPE_REF));
	cr_expect(eq(u32, metadata_type_ref_scope(metadata, 3, &table), 1));
	cr_expect(eq(int, (int)table, METADATA_MODULE_REF));
	cr_expect_str_eq(metadata_method_name(metadata, 3), "Third");
	cr_expect(eq(sz, metadata_method_signature(metadata, 2).size_bytes, 3));
	cr_expect(eq(u8, metadata_method_signature(metadata, 2).data[2], 8));
	cr_expect(eq(u32, metadata_method_owner(metadata, 1), 2));
	cr_expect(eq(u32, metadata_method_owner(metadata, 2), 2));
	cr_expect(eq(u32, metadata_method_owner(metadata, 3), 3));
	cr_expect(eq(u8, metadata_type_spec_signature(metadata, 1).data[1], 8));
	cr_expect_str_eq(metadata_member_ref_name(metadata, 1), "Get");
	cr_expect(eq(u32, metadata_member_ref_parent(metadata, 1, &table), 1));
	cr_expect(eq(int, (int)table, METADATA_TYPE_SPEC));
}

Test(metadata, reads_rows_of_two_byte_columns)
{
	struct metadata *metadata;
	struct buf bytes;

	buf_init(&bytes, 1 << 16);
	build_sample(&bytes, false);
	cr_assert(eq(ptr, metadata_open(bytes.data, bytes.size_bytes, &metadata), NULL));
	check_sample(metadata);
	metadata_close(metadata);
	buf_deinit(&bytes);
}

Test(metadata, reads_rows_of_four_byte_heap_columns)
{
	struct metadata *metadata;
	struct buf bytes;

	buf_init(&bytes, 1 << 16);
	build_sample(&bytes, true);
	cr_assert(eq(ptr, metadata_open(bytes.data, bytes.size_bytes, &metadata), NULL));
	check_sample(metadata);
	metadata_close(metadata);
	buf_deinit(&bytes);
}

Test(metadata, yields_nothing_for_rows_that_do_not_exist)
{
	static const uint32_t rids[] = { 0, 4, 0x00ffffff, UINT32_MAX };
	struct metadata *metadata;
	enum metadata_table table;
	struct buf bytes;

	buf_init(&bytes, 1 << 16);
	build_sample(&bytes, false);
	cr_assert(eq(ptr, metadata_open(bytes.data, bytes.size_bytes, &metadata), NULL));
	for (size_t i = 0; i < sizeof(rids) / sizeof(rids[0]); i++) {
		cr_expect_str_eq(metadata_type_def_name(metadata, rids[i]), "");
		cr_expect_str_eq(metadata_method_name(metadata, rids[i]), "");
		cr_expect_str_eq(metadata_assembly_ref_name(metadata, rids[i]), "");
		cr_expect(eq(sz, metadata_method_signature(metadata, rids[i]).size_bytes, 0));
		cr_expect(eq(u32, metadata_method_owner(metadata, rids[i]), 0));
		cr_expect(eq(u32, metadata_type_def_encloser(metadata, rids[i]), 0));
		cr_expect(eq(u32, metadata_type_ref_scope(metadata, rids[i], &table), 0));
		cr_expect(eq(u32, metadata_member_ref_parent(metadata, rids[i], &table), 0));
	}
	metadata_close(metadata);
	buf_deinit(&bytes);
}

/* Written by hand: the builder supports only two-byte columns. */
static void add_raw_type_ref(struct metadata_builder *builder, bool wide_scope, uint16_t name)
{
	struct buf *row = &builder->rows[METADATA_TYPE_REF];

	put_u16(row, 0);
	if (wide_scope)
		put_u16(row, 0);
	put_u16(row, name);
	put_u16(row, 0);
	builder->counts[METADATA_TYPE_REF]++;
}

/* A coded index with two tag bits has two bytes below 0x4000 rows, four from there on. */
static void check_coded_width(uint32_t type_ref_count, bool wide)
{
	struct metadata_builder builder;
	struct metadata *metadata;
	struct buf bytes, *row;

	metadata_builder_init(&builder);
	buf_append(&builder.strings, "Name", 5);
	for (uint32_t i = 0; i < type_ref_count; i++)
		add_raw_type_ref(&builder, wide, 1);
	row = &builder.rows[METADATA_TYPE_DEF];
	put_u32(row, 0);
	put_u16(row, 1);
	put_u16(row, 0);
	put_zeros(row, wide ? 4 : 2); /* Extends */
	put_u16(row, 1);
	put_u16(row, 1);
	builder.counts[METADATA_TYPE_DEF] = 1;
	add_method(&builder, "Last", "\0\0\1", 3);
	buf_init(&bytes, 1 << 24);
	build_metadata(&builder, &bytes);
	cr_assert(eq(ptr, metadata_open(bytes.data, bytes.size_bytes, &metadata), NULL));
	cr_expect_str_eq(metadata_type_ref_name(metadata, type_ref_count), "Name");
	cr_expect_str_eq(metadata_type_def_name(metadata, 1), "Name");
	cr_expect_str_eq(metadata_method_name(metadata, 1), "Last");
	cr_expect(eq(u32, metadata_method_owner(metadata, 1), 1));
	metadata_close(metadata);
	buf_deinit(&bytes);
	metadata_builder_deinit(&builder);
}

Test(metadata, widens_coded_indexes_when_tables_grow)
{
	check_coded_width(0x3fff, false);
	check_coded_width(0x4000, true);
}

Test(metadata, formats_guids_as_the_field_writes_them)
{
	char room[37];

	metadata_format_guid(mvid, room);
	cr_expect_str_eq(room, "00112233-4455-6677-8899-aabbccddeeff");
}

Test(metadata, reads_blobs_of_every_length_encoding)
{
	static const size_t sizes[] = { 0, 1, 0x7f, 0x80, 0x3fff, 0x4000 };
	struct metadata_builder builder;
	static uint8_t content[0x4000];
	struct metadata *metadata;
	struct buf bytes;

	metadata_builder_init(&builder);
	builder.wide_heaps = true;
	memset(content, 0x1d, sizeof(content));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		add_type_spec(&builder, content, sizes[i]);
	buf_init(&bytes, 1 << 24);
	build_metadata(&builder, &bytes);
	cr_assert(eq(ptr, metadata_open(bytes.data, bytes.size_bytes, &metadata), NULL));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		cr_expect(eq(sz, metadata_type_spec_signature(metadata, (uint32_t)i + 1).size_bytes,
			     sizes[i]));
	metadata_close(metadata);
	buf_deinit(&bytes);
	metadata_builder_deinit(&builder);
}

Test(metadata, survives_every_truncation)
{
	struct buf bytes;

	buf_init(&bytes, 1 << 16);
	build_sample(&bytes, false);
	for (size_t size = 0; size < bytes.size_bytes - 4; size++) {
		void *copy = malloc(size ? size : 1);
		struct metadata *metadata;
		struct sym_error *error;

		memcpy(copy, bytes.data, size);
		error = metadata_open(copy, size, &metadata);
		cr_expect(error != NULL, "accepted with %zu bytes", size);
		if (!error)
			metadata_close(metadata);
		sym_error_destroy(error);
		free(copy);
	}
	buf_deinit(&bytes);
}

Test(metadata, rejects_row_counts_beyond_the_data)
{
	struct metadata *metadata;
	struct sym_error *error;
	struct buf bytes;
	char *tables;

	buf_init(&bytes, 1 << 16);
	build_sample(&bytes, false);
	/* Row counts follow the 24 bytes of the table stream's head; Module is first. */
	tables = memmem(bytes.data, bytes.size_bytes, "\2\0\0\1", 4);
	cr_assert(tables != NULL);
	patch_u32(&bytes, (size_t)(tables - bytes.data) + 20, 0x00ffffff);
	error = metadata_open(bytes.data, bytes.size_bytes, &metadata);
	cr_assert(error != NULL);
	cr_expect(eq(int, (int)sym_error_code(error), SYM_ERROR_FORMAT));
	sym_error_destroy(error);
	buf_deinit(&bytes);
}

Test(metadata, never_reads_a_string_past_its_heap)
{
	struct metadata_builder builder;
	struct metadata *metadata;
	struct buf bytes;

	/* The last string has no NUL, so it is missing; the others are not. */
	metadata_builder_init(&builder);
	add_type_def(&builder, "N", "Whole");
	add_type_def(&builder, "N", "Cut");
	builder.strings.data[builder.strings.size_bytes - 3] = 'x';
	builder.strings.size_bytes = builder.strings.size_bytes - 2;
	buf_init(&bytes, 1 << 16);
	build_metadata(&builder, &bytes);
	cr_assert(eq(ptr, metadata_open(bytes.data, bytes.size_bytes, &metadata), NULL));
	cr_expect_str_eq(metadata_type_def_name(metadata, 1), "Whole");
	cr_expect_str_eq(metadata_type_def_name(metadata, 2), "");
	metadata_close(metadata);
	buf_deinit(&bytes);
	metadata_builder_deinit(&builder);
}

Test(metadata, gives_one_owner_if_method_lists_go_backwards)
{
	struct metadata_builder builder;
	struct metadata *metadata;
	struct buf bytes;

	metadata_builder_init(&builder);
	add_type_def(&builder, "N", "A");
	add_method(&builder, "One", "\0\0\1", 3);
	add_type_def(&builder, "N", "B");
	add_method(&builder, "Two", "\0\0\1", 3);
	add_type_def(&builder, "N", "C");
	/* C's method list starts where A's did. */
	builder.rows[0x02].data[builder.rows[0x02].size_bytes - 2] = 1;
	buf_init(&bytes, 1 << 16);
	build_metadata(&builder, &bytes);
	cr_assert(eq(ptr, metadata_open(bytes.data, bytes.size_bytes, &metadata), NULL));
	cr_expect(eq(u32, metadata_method_owner(metadata, 1), 1));
	metadata_close(metadata);
	buf_deinit(&bytes);
	metadata_builder_deinit(&builder);
}

static bool open_under_pressure(void *context)
{
	const struct buf *bytes = context;
	struct metadata *metadata;
	struct sym_error *error = metadata_open(bytes->data, bytes->size_bytes, &metadata);

	if (error)
		cr_expect(eq(int, (int)sym_error_code(error), SYM_ERROR_NO_MEMORY));
	else
		metadata_close(metadata);
	sym_error_destroy(error);
	return !error;
}

Test(metadata, survives_every_failed_allocation)
{
	struct buf bytes;

	buf_init(&bytes, 1 << 16);
	build_sample(&bytes, false);
	cr_expect(eq(sz, alloc_fail_each(open_under_pressure, &bytes), 4));
	buf_deinit(&bytes);
}
