/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "libsym/format/dotnet/bundle.h"
#include "libsym/image/bundled_assembly.h"
#include "tests/support/byte_writer.h"
#include "tests/support/elf_builder.h"
#include "tests/support/metadata_builder.h"
#include "tests/support/pe_builder.h"
#include "tests/support/runtime_elf.h"

/* Parts of the host's file. */
enum {
	MARK = 0x1000,
	MANIFEST = 0x2000,
	FILES = 0x4000,
	SECTION_RVA = 0x2000,
};

/* src/native/corehost/apphost/bundle_marker.cpp: sha256 of ".net core bundle" */
static const uint8_t mark[32] = { 0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38, 0x72, 0x7b, 0x93,
				  0x02, 0x14, 0xd7, 0xa0, 0x32, 0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae,
				  0x33, 0x18, 0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae };

struct host {
	uint8_t bytes[RUNTIME_ELF_BYTES];
	struct buf manifest;
	uint32_t file_count;
	size_t next; /* free in the file */
};

static void begin(struct host *host)
{
	runtime_elf_build(host->bytes, NULL, NULL, 0);
	buf_init(&host->manifest, 4096);
	host->file_count = 0;
	host->next = FILES;
}

static void add_file(struct host *host, const char *path, const void *bytes, size_t size_bytes,
		     size_t unpacked_bytes)
{
	put_u64(&host->manifest, host->next);
	put_u64(&host->manifest, unpacked_bytes ? unpacked_bytes : size_bytes);
	put_u64(&host->manifest, unpacked_bytes ? size_bytes : 0);
	put_u8(&host->manifest, BUNDLE_ASSEMBLY);
	put_u8(&host->manifest, (uint8_t)strlen(path));
	buf_append(&host->manifest, path, strlen(path));
	memcpy(host->bytes + host->next, bytes, size_bytes);
	host->next += (size_bytes + 15) & ~(size_t)15;
	host->file_count++;
}

static struct object_file *end(struct host *host)
{
	const uint64_t manifest_at = MANIFEST;
	struct object_file *object = NULL;
	struct buf head;

	buf_init(&head, 4096);
	put_u32(&head, 6);
	put_u32(&head, 0);
	put_u32(&head, host->file_count);
	put_u8(&head, 2);
	buf_append(&head, "id", 2);
	put_zeros(&head, 40);
	buf_append(&head, host->manifest.data, host->manifest.size_bytes);
	memcpy(host->bytes + MANIFEST, head.data, head.size_bytes);
	memcpy(host->bytes + MARK, &manifest_at, sizeof(manifest_at));
	memcpy(host->bytes + MARK + 8, mark, sizeof(mark));
	buf_deinit(&head);
	buf_deinit(&host->manifest);
	cr_assert_null(object_file_open(NULL, elf_builder_file(host->bytes, sizeof(host->bytes)),
					"/app", 0, sizeof(host->bytes), &object));
	return object;
}

/* An assembly of IL alone: a CLI header and metadata in one section. */
static void build_assembly(const char *name, struct buf *out)
{
	static const uint8_t signature[] = { 0, 0, 1 };
	struct metadata_builder builder;
	struct buf section, metadata;
	struct pe_recipe recipe = { .machine = 0x8664, .cli_rva = SECTION_RVA, .section_count = 1 };

	metadata_builder_init(&builder);
	add_assembly(&builder, name);
	add_type_def(&builder, "Ns", "Type");
	add_method(&builder, "Run", signature, sizeof(signature));
	buf_init(&metadata, 1 << 16);
	buf_init(&section, 1 << 16);
	build_metadata(&builder, &metadata);
	metadata_builder_deinit(&builder);
	put_u32(&section, 72);
	put_u32(&section, 0x50002);
	put_u32(&section, SECTION_RVA + 72);
	put_u32(&section, (uint32_t)metadata.size_bytes);
	put_zeros(&section, 72 - 16);
	buf_append(&section, metadata.data, metadata.size_bytes);
	recipe.sections[0] = (struct pe_recipe_section){ .rva = SECTION_RVA,
							 .bytes = section.data,
							 .size_bytes = section.size_bytes };
	buf_init(out, 1 << 17);
	build_pe(out, &recipe);
	buf_deinit(&section);
	buf_deinit(&metadata);
}

static void add_packed(struct host *host, const char *path, const struct buf *assembly)
{
	uint8_t room[1 << 16];
	z_stream stream = { .next_in = (Bytef *)assembly->data,
			    .avail_in = (uInt)assembly->size_bytes,
			    .next_out = room,
			    .avail_out = sizeof(room) };

	cr_assert_eq(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
	cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
	add_file(host, path, room, stream.total_out, assembly->size_bytes);
	deflateEnd(&stream);
}

static void assert_assembly(struct object_file *object, const char *file_name, const char *name)
{
	AUTO_BUNDLED_ASSEMBLY struct bundled_assembly *assembly = NULL;
	struct sym_error *error = bundled_assembly_open(object, file_name, &assembly);

	cr_assert_null(error, "%s", error ? sym_error_message(error) : "");
	cr_assert_not_null(assembly, "%s is not there", file_name);
	cr_assert_str_eq(metadata_assembly_name(bundled_assembly_metadata(assembly)), name);
	cr_assert_str_eq(metadata_method_name(bundled_assembly_metadata(assembly), 1), "Run");
}

static void assert_none(struct object_file *object, const char *file_name)
{
	struct bundled_assembly *assembly = NULL;

	cr_assert_null(bundled_assembly_open(object, file_name, &assembly));
	cr_assert_null(assembly);
}

static void assert_format_error(struct object_file *object, const char *file_name)
{
	struct bundled_assembly *assembly = NULL;
	struct sym_error *error = bundled_assembly_open(object, file_name, &assembly);

	cr_assert(error && sym_error_code(error) == SYM_ERROR_FORMAT, "%s", file_name);
	cr_assert_null(assembly);
	sym_error_destroy(error);
}

Test(bundled_assembly, opens_stored_and_compressed_assemblies)
{
	static struct host host;
	struct buf one, other;
	AUTO_OBJECT_FILE struct object_file *object = NULL;

	begin(&host);
	build_assembly("One", &one);
	build_assembly("Other", &other);
	add_file(&host, "One.dll", one.data, one.size_bytes, 0);
	add_packed(&host, "lib/Other.dll", &other);
	object = end(&host);
	assert_assembly(object, "One.dll", "One");
	assert_assembly(object, "Other.dll", "Other");
	buf_deinit(&one);
	buf_deinit(&other);
}

Test(bundled_assembly, finds_none_when_the_name_is_missing_or_ambiguous)
{
	static struct host host;
	struct buf one;
	AUTO_OBJECT_FILE struct object_file *object = NULL;

	begin(&host);
	build_assembly("One", &one);
	add_file(&host, "a/One.dll", one.data, one.size_bytes, 0);
	add_file(&host, "b/One.dll", one.data, one.size_bytes, 0);
	add_file(&host, "LongOne.dll", one.data, one.size_bytes, 0);
	object = end(&host);
	assert_none(object, "One.dll");
	assert_none(object, "gOne.dll");
	assert_none(object, "None.dll");
	assert_assembly(object, "LongOne.dll", "One");
	buf_deinit(&one);
}

Test(bundled_assembly, finds_none_in_a_host_without_a_manifest)
{
	static struct host host;
	AUTO_OBJECT_FILE struct object_file *object = NULL;

	runtime_elf_build(host.bytes, NULL, NULL, 0);
	cr_assert_null(object_file_open(NULL, elf_builder_file(host.bytes, sizeof(host.bytes)),
					"/app", 0, sizeof(host.bytes), &object));
	assert_none(object, "One.dll");
}

Test(bundled_assembly, rejects_inconsistent_files)
{
	static struct host host;
	struct buf one;
	size_t row;
	AUTO_OBJECT_FILE struct object_file *object = NULL;

	begin(&host);
	build_assembly("One", &one);
	add_file(&host, "Text.dll", "no assembly", 11, 0);
	add_file(&host, "Packed.dll", one.data, one.size_bytes,
		 one.size_bytes); /* it is not compressed */
	row = host.manifest.size_bytes;
	add_packed(&host, "Longer.dll", &one);
	patch_u32(&host.manifest, row + 8, (uint32_t)one.size_bytes + 1); /* uncompressed size */
	row = host.manifest.size_bytes;
	add_packed(&host, "Shorter.dll", &one);
	patch_u32(&host.manifest, row + 8, (uint32_t)one.size_bytes - 1);
	object = end(&host);
	assert_format_error(object, "Text.dll");
	assert_format_error(object, "Packed.dll");
	assert_format_error(object, "Longer.dll");
	assert_format_error(object, "Shorter.dll");
	buf_deinit(&one);
}
