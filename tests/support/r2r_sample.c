/* SPDX-License-Identifier: MIT */
/* The assemblies described in r2r_sample.h. */
#include "tests/support/r2r_sample.h"

#include "tests/support/metadata_builder.h"

const uint8_t sample_app_mvid[16] = { 0xa0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
const uint8_t sample_lib_mvid[16] = { 0xb0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

void build_app_metadata(struct buf *out)
{
	struct metadata_builder builder;

	metadata_builder_init(&builder);
	add_module(&builder, "App.dll", sample_app_mvid);
	add_assembly(&builder, "App");
	add_assembly_ref(&builder, "System.Runtime");
	add_assembly_ref(&builder, "Lib");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "System", "Uri");
	add_type_def(&builder, "", "<Module>");
	add_type_def(&builder, "Ns", "Outer");
	add_method(&builder, "Main", "\x00\x00\x01", 3);
	add_method(&builder, "Get", "\x20\x02\x12\x05\x08\x1d\x0e", 7);
	add_type_def(&builder, "", "Inner");
	add_method(&builder, ".ctor", "\x20\x00\x01", 3);
	add_type_def(&builder, "Ns", "G`1");
	add_method(&builder, "Add", "\x20\x01\x01\x13\x00", 5);
	add_method(&builder, "Conv", "\x10\x01\x01\x1d\x13\x00\x1e\x00", 8);
	add_nested(&builder, 3, 2);
	build_metadata(&builder, out);
	metadata_builder_deinit(&builder);
}

void build_lib_metadata(struct buf *out)
{
	struct metadata_builder builder;

	metadata_builder_init(&builder);
	add_module(&builder, "Lib.dll", sample_lib_mvid);
	add_assembly(&builder, "Lib");
	add_type_def(&builder, "", "<Module>");
	add_type_def(&builder, "Lib", "L");
	add_method(&builder, "One", "\x00\x00\x08", 3);
	add_type_def(&builder, "Lib", "H`1");
	add_method(&builder, "Put", "\x20\x01\x01\x13\x00", 5);
	add_method(&builder, "Turn", "\x30\x01\x01\x1e\x00\x1e\x00", 7);
	build_metadata(&builder, out);
	metadata_builder_deinit(&builder);
}

void build_manifest_metadata(struct buf *out)
{
	static const uint8_t none[16];
	struct metadata_builder builder;

	metadata_builder_init(&builder);
	add_module(&builder, "ManifestMetadata", none);
	add_assembly(&builder, "ManifestMetadata");
	add_assembly_ref(&builder, "App");
	add_assembly_ref(&builder, "Lib");
	add_type_def(&builder, "", "<Module>");
	build_metadata(&builder, out);
	metadata_builder_deinit(&builder);
}

void build_member_manifest(struct buf *out, const char *scope)
{
	static const uint8_t none[16];
	struct metadata_builder builder;

	metadata_builder_init(&builder);
	add_module(&builder, "ManifestMetadata", none);
	add_assembly(&builder, "ManifestMetadata");
	add_assembly_ref(&builder, "Lib");
	add_module_ref(&builder, scope);
	add_type_ref(&builder, SCOPE_MODULE_REF, 1, "Lib", "H`1");
	add_type_ref(&builder, SCOPE_MODULE_REF, 1, "Lib", "Gone");
	add_type_ref(&builder, SCOPE_MODULE_REF, 1, "Lib", "L");
	add_type_spec(&builder, "\x15\x12\x05\x01\x13\x00", 6);
	add_member_ref(&builder, PARENT_TYPE_SPEC, 1, "Put", "\x20\x01\x01\x13\x00", 5);
	add_member_ref(&builder, PARENT_TYPE_SPEC, 1, "Put", "\x20\x01\x01\x08", 4);
	add_member_ref(&builder, PARENT_TYPE_REF, 2, "Put", "\x20\x01\x01\x13\x00", 5);
	add_member_ref(&builder, PARENT_TYPE_REF, 3, "One", "\x00\x00\x08", 3);
	build_metadata(&builder, out);
	metadata_builder_deinit(&builder);
}

struct r2r_recipe plain_recipe(const struct buf *app_metadata)
{
	/*
	 * Entries are out of order on purpose: function 0 is Inner::.ctor's, 1 and 2 are Get's
	 * (the second a funclet, behind a gap), Main's is 3; the generic ones follow.
	 */
	return (struct r2r_recipe){
		.machine = 0xfd1d,
		.major_version = 16,
		.flags = 4,
		.metadata = app_metadata,
		.function_count = 7,
		.functions = {
			{ 0x10000, 0x10 },
			{ 0x10010, 0x30 },
			{ 0x10050, 0x08 },
			{ 0x10060, 0x20 },
			{ 0x10080, 0x01 },
			{ 0x10090, 0x10 },
			{ 0x100a0, 0x10 },
		},
		.method_count = 3,
		.methods = {
			{ 1, 3, FIXUPS_BEHIND },
			{ 2, 1, FIXUPS_NONE },
			{ 3, 0, FIXUPS_ELSEWHERE },
		},
		.instance_count = 3,
		.instances = {
			/* G<Uri>.Add, rid 4 */
			INSTANCE("\x40\x15\x12\x10\x01\x12\x05\x04", 4),
			/* G<__Canon>.Conv<int>, rid 5 */
			INSTANCE("\x44\x15\x12\x10\x01\x3e\x05\x01\x08", 5),
			/* G<int[]>.Add: code shared with Conv's */
			INSTANCE("\x40\x15\x12\x10\x01\x1d\x08\x04", 6),
		},
	};
}

/* ---- runtime-async methods ------------------------------------------------- */

enum {
	STUB = 0x38,
	OTHER = 0x10
};

void build_runtime_async_metadata(struct buf *out)
{
	struct metadata_builder builder;

	metadata_builder_init(&builder);
	add_module(&builder, "App.dll", sample_app_mvid);
	add_assembly(&builder, "App");
	add_assembly_ref(&builder, "System.Runtime");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "Tasks", "Task");
	add_type_ref(&builder, SCOPE_ASSEMBLY_REF, 1, "Tasks", "Task`1");
	add_type_def(&builder, "", "<Module>");
	add_type_def(&builder, "Ns", "Outer");
	add_method(&builder, "Main", "\x00\x00\x01", 3);
	/* Task<long> Count(int), static; Task Plain(); Task<string[]> Lines() */
	add_method(&builder, "Count", "\x00\x01\x15\x12\x09\x01\x0a\x08", 8);
	add_method(&builder, "Plain", "\x20\x00\x12\x05", 4);
	add_method(&builder, "Lines", "\x20\x00\x15\x12\x09\x01\x1d\x0e", 8);
	build_metadata(&builder, out);
	metadata_builder_deinit(&builder);
}

struct r2r_recipe runtime_async_recipe(const struct buf *metadata)
{
	return (struct r2r_recipe){
		.machine = 0xfd1d,
		.major_version = 26,
		.metadata = metadata,
		.function_count = 7,
		.functions = {
			{ 0x10000, 0x10 },
			{ 0x10010, 0x30 },
			{ 0x10040, 0x08 },
			{ 0x10050, 0x08 },
			{ 0x10060, 0x20 },
			{ 0x10080, 0x01 },
			{ 0x10090, 0x10 },
		},
		.method_count = 1,
		.methods = { { 1, 0, FIXUPS_BEHIND } },
		.instance_count = 3,
		.instances = {
			/* Row 0, cell 0; row 1, cell 9. */
			INSTANCE_WITH_FIXUPS("\x81\x00\x02", 1, "\x00\x10\x19\x00"),
			/* Row 0, cells 1 and 2. */
			INSTANCE_WITH_FIXUPS("\x81\x00\x03", 4, "\x10\x01\x00"),
			INSTANCE("\x81\x00\x04", 6),
		},
		.import_count = 2,
		.imports = {
			{ 3, { { OTHER, 0x10080 }, { OTHER, 5 }, { STUB, 0x10040 } } },
			{ 11, { [7] = { STUB, 0x10050 }, [8] = { STUB, 0x10080 },
				[9] = { STUB, 0x10080 }, [10] = { STUB, 0x10081 } } },
		},
	};
}
