/* SPDX-License-Identifier: MIT */
#include "libsym/image.h"

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
/* The same source as IL. */
static const char il[] = "fixtures/prebuilt/sample.dll";

static struct image *open_bytes(const void *bytes, size_t size_bytes)
{
	struct image *image = NULL;
	int fd = elf_builder_file(bytes, size_bytes);

	cr_assert_null(image_open(fd, "bytes", 0, SPARSE_FILE_TO_END, &image));
	return image;
}

Test(image, recognises_a_precompiled_assembly)
{
	struct image *image AUTO_IMAGE = image_file_open(precompiled);

	cr_expect_eq(image->kind, SYM_IMAGE_READYTORUN);
	cr_expect_str_eq(image_assembly_name(image), "sample");
	cr_assert_not_null(image_mvid_text(image));
	cr_expect_eq(strlen(image_mvid_text(image)), 36);
	cr_expect_eq(strlen(image_content_key(image)), 32);
}

Test(image, recognises_an_assembly_without_precompiled_code)
{
	struct image *image AUTO_IMAGE = image_file_open(il);

	cr_expect_eq(image->kind, SYM_IMAGE_IL);
	cr_expect_str_eq(image_assembly_name(image), "sample");
}

Test(image, recognises_an_elf_file_and_its_segments)
{
	static const struct elf_builder_symbol symbol = { "f", ELF_BUILDER_TEXT_VADDR, 4,
							  STB_GLOBAL, STT_FUNC };
	size_t size_bytes;
	uint8_t *bytes =
		elf_builder_make(&symbol, 1, (struct elf_builder_options){ 0 }, &size_bytes);
	struct image *image AUTO_IMAGE = open_bytes(bytes, size_bytes);
	uint64_t vaddr;

	cr_expect_eq(image->kind, SYM_IMAGE_ELF);
	cr_expect_not(image->position_independent);
	cr_assert_eq(image->segment_count, 2);
	cr_assert(image_offset_to_position(image, ELF_BUILDER_TEXT_OFFSET + 5, &vaddr));
	cr_expect_eq(vaddr, ELF_BUILDER_TEXT_VADDR + 5);
	cr_expect_not(image_offset_to_position(image, 0, &vaddr));
	cr_expect_null(image_assembly_name(image));
	cr_expect_null(image_mvid_text(image));
	free(bytes);
}

/* rva and offset of the executable section differ in this image, as in all that crossgen2 makes. */
Test(image, converts_offsets_of_a_pe_file)
{
	struct image *image AUTO_IMAGE = image_file_open(precompiled);
	uint64_t rva;

	for (size_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (!segment->executable)
			continue;
		cr_assert_neq(segment->offset, segment->position);
		cr_assert(image_offset_to_position(image, segment->offset + 1, &rva));
		cr_expect_eq(rva, segment->position + 1);
	}
	cr_expect_not(image_offset_to_position(image, 1 << 30, &rva));
}

Test(image, takes_other_files_for_what_they_are_not_known_to_be)
{
	static const char *const texts[] = { "", "x", "MZ", "#!/bin/sh\n", "\177ELF\2\3" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct image *image AUTO_IMAGE = open_bytes(texts[i], strlen(texts[i]));

		cr_expect_eq(image->kind, SYM_IMAGE_UNKNOWN);
		cr_expect_null(image_assembly_name(image));
	}
}

Test(image, tells_contents_apart_by_key)
{
	struct image *image AUTO_IMAGE = open_bytes("one", 3);
	struct image *same AUTO_IMAGE = open_bytes("one", 3);
	struct image *other AUTO_IMAGE = open_bytes("two", 3);

	cr_expect_str_eq(image_content_key(image), image_content_key(same));
	cr_expect_str_neq(image_content_key(image), image_content_key(other));
}

Test(image, opens_a_part_of_a_file_as_an_image)
{
	size_t size_bytes;
	char *content = scratch_read(precompiled, &size_bytes);
	char *bundle = malloc(size_bytes + 777);
	struct image *image AUTO_IMAGE = NULL;
	struct image *whole AUTO_IMAGE = image_file_open(precompiled);
	int fd;

	cr_assert_not_null(bundle);
	memset(bundle, 'b', 777);
	memcpy(bundle + 777, content, size_bytes);
	fd = elf_builder_file(bundle, size_bytes + 777);
	cr_assert_null(image_open(fd, "bundle", 777, size_bytes, &image));
	cr_expect_eq(image->kind, SYM_IMAGE_READYTORUN);
	cr_expect_str_eq(image_mvid_text(image), image_mvid_text(whole));
	cr_expect_str_eq(image_content_key(image), image_content_key(whole));
	free(bundle);
	free(content);
}

Test(image, keeps_managed_code_open_as_long_as_somebody_uses_it)
{
	struct image *image AUTO_IMAGE = image_file_open(precompiled);
	const struct image_managed *first, *second;

	cr_assert_null(image_use_managed(image, &first));
	cr_assert_null(image_use_managed(image, &second));
	cr_expect_eq(first, second);
	image_unuse_managed(image);
	cr_expect_not_null(first->metadata);
	cr_expect_str_eq(metadata_assembly_name(first->metadata), "sample");
	image_unuse_managed(image);
}

Test(image, refuses_managed_code_of_what_is_no_assembly)
{
	struct image *image AUTO_IMAGE = open_bytes("text", 4);
	const struct image_managed *managed;
	struct sym_error *error = image_use_managed(image, &managed);

	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_UNSUPPORTED);
	sym_error_destroy(error);
}

/* The headers, byte by byte: an image or an error, never a crash (run with SAN=1). */
Test(image, survives_every_flipped_byte_of_the_headers_and_every_truncation)
{
	size_t size_bytes;
	char *content = scratch_read(precompiled, &size_bytes);
	size_t opened = 0;

	for (size_t i = 0; i < 2048; i++) {
		struct image *image AUTO_IMAGE = NULL;
		struct sym_error *error;
		int fd;

		if (i < 1024)
			content[i] ^= 0x7f;
		fd = elf_builder_file(content, i < 1024 ? size_bytes : i - 1024);
		if (i < 1024)
			content[i] ^= 0x7f;
		error = image_open(fd, "damaged.dll", 0, SPARSE_FILE_TO_END, &image);
		if (error) {
			close(fd);
		} else {
			image_assembly_name(image);
			opened++;
		}
		sym_error_destroy(error);
	}
	cr_expect_gt(opened, 0);
	free(content);
}

static bool open_and_identify(void *context)
{
	struct image *image AUTO_IMAGE = NULL;
	int fd = open(precompiled, O_RDONLY | O_CLOEXEC);
	const struct image_managed *managed;
	struct sym_error *error;

	(void)context;
	error = image_open(fd, precompiled, 0, SPARSE_FILE_TO_END, &image);
	if (error)
		close(fd);
	else
		error = image_use_managed(image, &managed);
	if (!error) {
		image_unuse_managed(image);
		return true;
	}
	cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
	sym_error_destroy(error);
	return false;
}

Test(image, survives_the_lack_of_memory_anywhere)
{
	cr_expect_gt(alloc_fail_each(open_and_identify, NULL), 3);
}
