/* SPDX-License-Identifier: MIT */
#include "libsym/file/object_file.h"

#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/alloc_fail.h"
#include "tests/support/elf_builder.h"
#include "tests/support/image_file.h"
#include "tests/support/program.h"

/* Precompiled by crossgen2; fixtures/MANIFEST.md. */
static const char precompiled[] = "fixtures/recorded/opt/sample/sample.dll";
/* IL of the same source. */
static const char il[] = "fixtures/prebuilt/sample.dll";

static struct object_file *open_bytes(const void *bytes, size_t size_bytes)
{
	struct object_file *object = NULL;
	int fd = elf_builder_file(bytes, size_bytes);

	cr_assert_null(object_file_open(NULL, fd, "bytes", 0, SPARSE_FILE_TO_END, &object));
	return object;
}

Test(object_file, recognises_a_precompiled_assembly)
{
	struct object_file *object AUTO_OBJECT_FILE = image_file_open(precompiled);

	cr_expect_eq(object->kind, SYM_IMAGE_READYTORUN);
	cr_expect_str_eq(object_file_assembly_name(object), "sample");
	cr_assert_not_null(object_file_mvid_text(object));
	cr_expect_eq(strlen(object_file_mvid_text(object)), 36);
	cr_expect_eq(strlen(object_file_content_key(object)), 64);
}

Test(object_file, recognises_an_assembly_without_precompiled_code)
{
	struct object_file *object AUTO_OBJECT_FILE = image_file_open(il);

	cr_expect_eq(object->kind, SYM_IMAGE_IL);
	cr_expect_str_eq(object_file_assembly_name(object), "sample");
}

Test(object_file, recognises_an_elf_file_and_its_segments)
{
	static const struct elf_builder_symbol symbol = { "f", ELF_BUILDER_TEXT_VADDR, 4,
							  STB_GLOBAL, STT_FUNC };
	size_t size_bytes;
	uint8_t *bytes =
		elf_builder_make(&symbol, 1, (struct elf_builder_options){ 0 }, &size_bytes);
	struct object_file *object AUTO_OBJECT_FILE = open_bytes(bytes, size_bytes);
	uint64_t vaddr;

	cr_expect_eq(object->kind, SYM_IMAGE_ELF);
	cr_expect_not(object->position_independent);
	cr_assert_eq(object->segment_count, 2);
	cr_assert(object_file_offset_to_position(object, ELF_BUILDER_TEXT_OFFSET + 5, &vaddr));
	cr_expect_eq(vaddr, ELF_BUILDER_TEXT_VADDR + 5);
	cr_expect_not(object_file_offset_to_position(object, 0, &vaddr));
	cr_expect_null(object_file_assembly_name(object));
	cr_expect_null(object_file_mvid_text(object));
	free(bytes);
}

/* Rva and offset of the executable section differ in this image, as in all images of crossgen2. */
Test(object_file, converts_offsets_of_a_pe_file)
{
	struct object_file *object AUTO_OBJECT_FILE = image_file_open(precompiled);
	uint64_t rva;

	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];

		if (!segment->executable)
			continue;
		cr_assert_neq(segment->offset, segment->position);
		cr_assert(object_file_offset_to_position(object, segment->offset + 1, &rva));
		cr_expect_eq(rva, segment->position + 1);
	}
	cr_expect_not(object_file_offset_to_position(object, 1 << 30, &rva));
}

Test(object_file, has_kind_unknown_for_other_files)
{
	static const char *const texts[] = { "", "x", "MZ", "#!/bin/sh\n", "\177ELF\2\3" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct object_file *object AUTO_OBJECT_FILE =
			open_bytes(texts[i], strlen(texts[i]));

		cr_expect_eq(object->kind, SYM_IMAGE_UNKNOWN);
		cr_expect_null(object_file_assembly_name(object));
	}
}

Test(object_file, has_different_keys_for_different_contents)
{
	struct object_file *object AUTO_OBJECT_FILE = open_bytes("one", 3);
	struct object_file *same AUTO_OBJECT_FILE = open_bytes("one", 3);
	struct object_file *other AUTO_OBJECT_FILE = open_bytes("two", 3);

	/*
	 * printf one
	 *
	 * sha512sum
	 *
	 * cut -c1-64 (coreutils 9.1); XXH3 is not used because it has second preimages.
	 */
	cr_expect_str_eq(object_file_content_key(object), "05f70341078acf6a06d423d21720f964"
							  "3d5f953626d88a02636dc3a9e79582ae");
	cr_expect_str_eq(object_file_content_key(object), object_file_content_key(same));
	cr_expect_str_neq(object_file_content_key(object), object_file_content_key(other));
}

Test(object_file, opens_a_part_of_a_file_as_an_image)
{
	size_t size_bytes;
	char *content = scratch_read(precompiled, &size_bytes);
	char *bundle = malloc(size_bytes + 777);
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct object_file *whole AUTO_OBJECT_FILE = image_file_open(precompiled);
	int fd;

	cr_assert_not_null(bundle);
	memset(bundle, 'b', 777);
	memcpy(bundle + 777, content, size_bytes);
	fd = elf_builder_file(bundle, size_bytes + 777);
	cr_assert_null(object_file_open(NULL, fd, "bundle", 777, size_bytes, &object));
	cr_expect_eq(object->kind, SYM_IMAGE_READYTORUN);
	cr_expect_str_eq(object_file_mvid_text(object), object_file_mvid_text(whole));
	cr_expect_str_eq(object_file_content_key(object), object_file_content_key(whole));
	free(bundle);
	free(content);
}

Test(object_file, keeps_managed_code_open_while_it_has_users)
{
	struct object_file *object AUTO_OBJECT_FILE = image_file_open(precompiled);
	const struct object_managed *first, *second;

	cr_assert_null(object_file_use_managed(object, &first));
	cr_assert_null(object_file_use_managed(object, &second));
	cr_expect_eq(first, second);
	object_file_unuse_managed(object);
	cr_expect_not_null(first->metadata);
	cr_expect_str_eq(metadata_assembly_name(first->metadata), "sample");
	object_file_unuse_managed(object);
}

Test(object_file, rejects_managed_code_of_other_files)
{
	struct object_file *object AUTO_OBJECT_FILE = open_bytes("text", 4);
	const struct object_managed *managed;
	struct sym_error *error = object_file_use_managed(object, &managed);

	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_UNSUPPORTED);
	sym_error_destroy(error);
}

/*
 * Every changed byte of the headers yields an object or an error, never a crash (run with SAN=1).
 */
Test(object_file, survives_every_flipped_byte_of_the_headers_and_every_truncation)
{
	size_t size_bytes;
	char *content = scratch_read(precompiled, &size_bytes);
	size_t opened = 0;

	for (size_t i = 0; i < 2048; i++) {
		struct object_file *object AUTO_OBJECT_FILE = NULL;
		struct sym_error *error;
		int fd;

		if (i < 1024)
			content[i] ^= 0x7f;
		fd = elf_builder_file(content, i < 1024 ? size_bytes : i - 1024);
		if (i < 1024)
			content[i] ^= 0x7f;
		error = object_file_open(NULL, fd, "damaged.dll", 0, SPARSE_FILE_TO_END, &object);
		if (error) {
			close(fd);
		} else {
			object_file_assembly_name(object);
			opened++;
		}
		sym_error_destroy(error);
	}
	cr_expect_gt(opened, 0);
	free(content);
}

static bool open_and_identify(void *context)
{
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	int fd = open(precompiled, O_RDONLY | O_CLOEXEC);
	const struct object_managed *managed;
	struct sym_error *error;

	(void)context;
	error = object_file_open(NULL, fd, precompiled, 0, SPARSE_FILE_TO_END, &object);
	if (error)
		close(fd);
	else
		error = object_file_use_managed(object, &managed);
	if (!error) {
		object_file_unuse_managed(object);
		return true;
	}
	cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return false;
}

Test(object_file, survives_every_failed_allocation)
{
	cr_expect_gt(alloc_fail_each(open_and_identify, NULL), 3);
}
