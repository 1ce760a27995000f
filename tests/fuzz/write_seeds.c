/* SPDX-License-Identifier: MIT */
/*
 * write_seeds DIRECTORY: makes the seeds of the fuzz targets pe, metadata, r2r,
 * method_name, csharp_name, identity, portable_pdb, debug_info, inline_tree and jit_debug from the
 * builders of the tests, one file for each flavour.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "tests/support/go_table.h"
#include "tests/support/identity_samples.h"
#include "tests/support/pdb_builder.h"
#include "tests/support/r2r_sample.h"

static const char *directory;

static void write_seed(const char *name, const void *bytes, size_t size_bytes)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	file = fopen(path, "wb");
	if (!file || fwrite(bytes, 1, size_bytes, file) != size_bytes) {
		perror(path);
		exit(1);
	}
	fclose(file);
}

static void write_image(const char *name, const struct r2r_recipe *recipe)
{
	struct buf file;

	buf_init(&file, 1 << 20);
	build_r2r(&file, recipe);
	write_seed(name, file.data, file.size_bytes);
	buf_deinit(&file);
}

static void write_images(const struct buf *app, const struct buf *lib, const struct buf *manifest,
			 const struct buf *members)
{
	static const uint8_t mvids[2][16];
	struct r2r_recipe recipe = plain_recipe(app);

	write_image("r2r/plain", &recipe);
	write_image("pe/plain", &recipe);
	recipe.machine = 0xd11d;
	recipe.functions[4].size_bytes = 4;
	write_image("r2r/arm64", &recipe);
	recipe = plain_recipe(app);
	recipe.manifest = manifest;
	recipe.instances[0] = (struct r2r_recipe_instance)INSTANCE(
		"\x80\xc0\x02\x15\x12\x0c\x01\x3f\x02\x12\x08\x02", 4);
	recipe.instances[2].function = 4;
	recipe.cold_count = 1;
	recipe.cold_pairs[0][0] = 6;
	recipe.thunks_rva = 0x100b0;
	recipe.thunks_bytes = 16;
	write_image("r2r/cross-module-cold", &recipe);
	recipe = plain_recipe(app);
	recipe.manifest = members;
	recipe.instances[0] =
		(struct r2r_recipe_instance)INSTANCE("\x80\xd0\x03\x15\x12\x05\x01\x08\x01", 4);
	recipe.instances[1] = (struct r2r_recipe_instance)INSTANCE("\x80\xd0\x03\x12\x0d\x04", 5);
	write_image("r2r/members", &recipe);
	recipe = plain_recipe(NULL);
	recipe.through_export = true;
	recipe.manifest = manifest;
	recipe.manifest_mvids = mvids;
	recipe.manifest_mvid_count = 2;
	recipe.method_count = 0;
	recipe.component_count = 2;
	recipe.components[0].method_count = 1;
	recipe.components[0].methods[0].rid = 1;
	recipe.components[1] = recipe.components[0];
	recipe.components[1].embedded_metadata = lib;
	recipe.instance_count = 1;
	recipe.instances[0] =
		(struct r2r_recipe_instance)INSTANCE("\x40\x3f\x03\x15\x12\x0c\x01\x3e\x02", 4);
	write_image("r2r/composite", &recipe);
	write_image("pe/export", &recipe);
}

static void write_awaiting(void)
{
	struct r2r_recipe recipe;
	struct buf metadata;

	buf_init(&metadata, 1 << 16);
	build_runtime_async_metadata(&metadata);
	recipe = runtime_async_recipe(&metadata);
	write_image("r2r/awaiting", &recipe);
	buf_deinit(&metadata);
}

static void write_names(void)
{
	static const char *const names[] = {
		"instance !0[] [A] N.G`1[System.__Canon]::Get(!0[])[OptimizedTier1]",
		"method void *(class [A]B) [L] O+I::I<(A,B)>.M(method int32 *(string))",
		"System.Void (System.Int32) N.P`2[A, B]::M(System.String, T[])",
		"stub<1> AllocateTemporaryEntryPoints<PRECODE_FIXUP>",
		"std::vector<int>::push_back(int const&) [clone .part.0]",
	};
	char name[32];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "method_name/%zu", i);
		write_seed(name, names[i], strlen(names[i]));
	}
}

static void write_csharp_names(void)
{
	/* the first byte has the flags */
	static const char *const names[] = {
		"0instance void [A] N.S`1+<M>d__5`1[N.C,System.Int32]::MoveNext()",
		"1instance void [A] T+<>c__DisplayClass0_0+<<M>b__8_0>d::MoveNext()",
		"2int32 [A] T::<M>g__Add|0_1(int32,valuetype T/<>c__DisplayClass0_0&)",
		"3instance char [A] T::get_Item(int32&,string[][0...,0...],method int32 *(string))",
		"4instance bool [A] F+<Exo-IFoo<System-Int32\\,Exo-E>-M>d__0::MoveNext()",
		"5int32 [A] M`1[N.C]::op_CheckedExplicit(valuetype [R]System.Nullable`1<!0>)",
		"8T+<M>d__5::N.I<(A,B)>.get_Current",
		"0System.Int32 N.T::M(System.String, N.G`1[System.ValueTuple`2[A, B]], X&)",
	};
	char name[32];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(name, sizeof(name), "csharp_name/%zu", i);
		write_seed(name, names[i], strlen(names[i]));
	}
}

static void write_identities(void)
{
	const struct sample_elf wide = { .build_id = "ef8f58a0b402d11c68f78342ef4fcc7d23798d4c",
					 .has_text = true };
	const struct sample_elf narrow = { .build_id = "001ba81f23966cf7",
					   .is_32bit = true,
					   .has_debug_info = true,
					   .has_symbol_table = true };
	struct buf files[8];

	for (size_t i = 0; i < 8; i++)
		buf_init(&files[i], 1 << 16);
	sample_elf(&files[0], &wide);
	sample_elf(&files[1], &narrow);
	sample_pe(&files[2], 0x9757f3a6, 0x36c00);
	sample_pdb(&files[3], 1, 2);
	sample_compressed_pdb(&files[4], 1);
	sample_portable_pdb(&files[5]);
	sample_macho(&files[6]);
	sample_wasm(&files[7]);
	for (size_t i = 0; i < 8; i++) {
		char name[32];

		snprintf(name, sizeof(name), "identity/%zu", i);
		write_seed(name, files[i].data, files[i].size_bytes);
		buf_deinit(&files[i]);
	}
	write_seed("identity/r2rmap", SAMPLE_MAP, strlen(SAMPLE_MAP));
}

/* A table of each version and width, whole and truncated. */
static void write_go_tables(void)
{
	static const struct go_table_function functions[] = {
		{ "runtime.text", 0x20, 0x30, "/go/runtime/asm.s", 7 },
		{ "main.(*T).Method", 0x60, 0x1000, "/src/main.go", 4000 },
	};

	for (int version = 0; version < GO_TABLE_VERSIONS; version++)
		for (unsigned int width = 4; width <= 8; width += 4) {
			const struct go_table table = {
				.version = (enum go_table_version)version,
				.pointer_bytes = width,
				.text_start = 0x401000,
				.stated_text_start = 0x401000,
				.functions = functions,
				.count = 2,
				.end_distance = 0x1060,
			};
			struct go_table_layout layout;
			char name[64];
			struct buf bytes;

			buf_init(&bytes, 1 << 20);
			go_table_write(&table, &bytes, &layout);
			snprintf(name, sizeof(name), "gopclntab/version-%d-%u-bit", version,
				 width * 8);
			write_seed(name, bytes.data, bytes.size_bytes);
			snprintf(name, sizeof(name), "gopclntab/version-%d-%u-bit-cut", version,
				 width * 8);
			write_seed(name, bytes.data, bytes.size_bytes - 30);
			buf_deinit(&bytes);
		}
}

/* A point, a hidden one, a change of the document. */
static void write_pdb(void)
{
	static const char points[] = "\x00\x00\x00\x04\x0a\x05\x04\x00\x00\x02\x02\x7f\x04\x7d"
				     "\x00\x02\x03\x00\x01\x7b\x00";
	const struct pdb_recipe recipe = {
		.id = { 1, 2, 3 },
		.type_row_counts = { 1, 3 },
		.documents = { "/src/a.cs", "/src/b.cs" },
		.methods = { { 1, points, sizeof(points) - 1 }, { 0, NULL, 0 } },
		.method_count = 2,
		.move_next = 2,
		.kickoff = 1,
		.source_link = "{}",
	};
	struct buf bytes;

	buf_init(&bytes, 1 << 16);
	build_pdb(&recipe, &bytes);
	write_seed("portable_pdb/plain", bytes.data, bytes.size_bytes);
	buf_deinit(&bytes);
}

static void put_u16(uint8_t *bytes, uint16_t value)
{
	memcpy(bytes, &value, sizeof(value));
}

static void put_address(uint8_t *bytes, uint16_t place)
{
	const uint64_t address = 0x10000 + (uint64_t)place;

	memcpy(bytes, &address, sizeof(address));
}

/* One method in the memory that fuzz_jit_debug.c describes, and three that are none. */
static void write_jit_debug(const char *name, uint8_t form, const char *blob, size_t blob_bytes)
{
	enum {
		HEAD = 18,
		CODE = 0x40,
		HEADER = 0x50,
		CHUNK = 0x80,
		TYPE = 0xa0,
		MODULE = 0xb0,
		PLACE = 0xd0,
		BLOB = 0x100
	};
	uint8_t bytes[HEAD + 0x180] = { form }, *memory = bytes + HEAD;

	put_u16(bytes + 2, CODE);
	put_u16(bytes + 4, 100);
	put_address(memory + CODE - 8, HEADER);
	put_address(memory + HEADER, BLOB);
	put_address(memory + HEADER + 8, CHUNK + 16); /* MethodDesc */
	memory[HEADER + 16] = 1;
	memory[HEADER + 24] = 100; /* end of its only piece */
	put_address(memory + CHUNK, TYPE);
	memory[CHUNK + 16] = 1; /* row */
	put_address(memory + TYPE, MODULE);
	/* Assembly, PEAssembly, PEImage, its layout: fields at 0. */
	put_address(memory + MODULE, PLACE);
	put_address(memory + MODULE + 16, PLACE);
	put_address(memory + PLACE, PLACE);
	memcpy(memory + BLOB, blob, blob_bytes);
	write_seed(name, bytes, sizeof(bytes));
}

static void write_debug_information(void)
{
	/* Bounds of 7 bytes; 2 entries in each form. */
	static const char nibbles[] = "\x07\x22\x10\x22\x4c\x22\x00\x00";
	static const char packed[] = "\x07\x42\x33\x92\x30\x52\x00\x00";
	static const char jitted[] = "\x02\x03\x00\x00\x00\x01\x02\x03\x07\x42\x33\x92\x30\x52\x00";

	/* Four nodes, one of them three deep; four mappings. */
	static const char tree[] =
		"\x44\x10\x00\x00\x00\x00\x00\x00\x00\x62\x00\x02\x00\x00\x00\x00\x00\x00"
		"\xa0\x70\x00\x03\x00\x00\x00\x00\x00\x00\x70\x00\x40\x00\x00\x00\x00\x00"
		"\x00\x00\x19\x24\x0a\x40\xa2\x60\x24\x1a\x93\x26\x99\x37\x3a\x02";

	write_seed("inline_tree/four", tree, sizeof(tree) - 1);
	write_seed("debug_info/nibbles", nibbles, sizeof(nibbles) - 1);
	write_seed("debug_info/packed", packed, sizeof(packed) - 1);
	write_seed("debug_info/jitted", jitted, sizeof(jitted) - 1);
	write_jit_debug("jit_debug/net10", 0, jitted, sizeof(jitted) - 1);
	write_jit_debug("jit_debug/net11", 1, packed, sizeof(packed) - 1);
}

int main(int argc, char **argv)
{
	struct buf app, lib, manifest, members;

	if (argc != 2)
		return 2;
	directory = argv[1];
	buf_init(&app, 1 << 16);
	buf_init(&lib, 1 << 16);
	buf_init(&manifest, 1 << 16);
	buf_init(&members, 1 << 16);
	build_app_metadata(&app);
	build_lib_metadata(&lib);
	build_manifest_metadata(&manifest);
	write_seed("metadata/app", app.data, app.size_bytes);
	write_seed("metadata/manifest", manifest.data, manifest.size_bytes);
	build_member_manifest(&members, "#:2");
	write_images(&app, &lib, &manifest, &members);
	write_awaiting();
	write_names();
	write_csharp_names();
	write_pdb();
	write_debug_information();
	write_identities();
	write_go_tables();
	buf_deinit(&app);
	buf_deinit(&lib);
	buf_deinit(&manifest);
	buf_deinit(&members);
	return 0;
}
