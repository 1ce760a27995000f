/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "tests/support/byte_writer.h"
#include "tests/support/identity_samples.h"

static struct buf file;
static struct sym_identity identity;

static void begin(void)
{
	buf_init(&file, 1 << 20);
	identity = (struct sym_identity){ .size = sizeof(identity) };
}

static void end(void)
{
	buf_deinit(&file);
}

TestSuite(file_identity, .init = begin, .fini = end);

static int content_file(void)
{
	int fd = memfd_create("sample", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(path_write_all(fd, file.data, file.size_bytes), 0);
	return fd;
}

/* The code of the error; 0 for none. */
static int identify(void)
{
	int fd AUTO_CLOSE = content_file();
	struct sym_error *error = sym_identity_read(fd, UINT64_MAX, &identity);
	int code = error ? (int)sym_error_code(error) : 0;

	sym_error_destroy(error);
	return code;
}

static void expect(enum sym_identity_kind kind, const char *id)
{
	char text[129];

	cr_assert_eq(identify(), 0);
	cr_assert_eq(identity.kind, (uint32_t)kind);
	hex_write_bytes(text, identity.id, identity.id_size_bytes);
	cr_assert_str_eq(text, id);
	cr_assert_eq(identity.file_size_bytes, file.size_bytes);
}

static const char sha_id[] = "ef8f58a0b402d11c68f78342ef4fcc7d23798d4c";

Test(file_identity, is_the_build_id_of_a_stripped_program)
{
	sample_elf(&file, &(struct sample_elf){ .build_id = sha_id, .has_text = true });
	expect(SYM_IDENTITY_ELF, sha_id);
	cr_assert_eq(identity.contents, (uint32_t)SYM_CONTENT_CODE);
}

Test(file_identity, distinguishes_a_debug_file_from_its_program)
{
	sample_elf(&file, &(struct sample_elf){ .build_id = sha_id,
						.has_debug_info = true,
						.has_symbol_table = true });
	expect(SYM_IDENTITY_ELF, sha_id);
	cr_assert_eq(identity.contents,
		     (uint32_t)(SYM_CONTENT_DEBUG_INFO | SYM_CONTENT_SYMBOL_TABLE));
}

Test(file_identity, reads_32_bit_files_and_short_ids)
{
	sample_elf(&file, &(struct sample_elf){ .build_id = "001ba81f23966cf7",
						.has_text = true,
						.is_32bit = true });
	expect(SYM_IDENTITY_ELF, "001ba81f23966cf7");
	cr_assert_eq(identity.contents, (uint32_t)SYM_CONTENT_CODE);
}

Test(file_identity, finds_the_note_without_section_headers)
{
	sample_elf(&file, &(struct sample_elf){ .build_id = sha_id,
						.has_text = true,
						.has_segments_only = true });
	expect(SYM_IDENTITY_ELF, sha_id);
	cr_assert_eq(identity.contents, (uint32_t)SYM_CONTENT_CODE);
}

Test(file_identity, accepts_elf_files_without_an_id)
{
	sample_elf(&file, &(struct sample_elf){ .has_text = true });
	expect(SYM_IDENTITY_ELF, "");
}

Test(file_identity, reads_time_stamp_and_size_of_an_image)
{
	sample_pe(&file, 0x9757f3a6, 0x36c00);
	expect(SYM_IDENTITY_PE, "");
	cr_assert_eq(identity.timestamp, 0x9757f3a6u);
	cr_assert_eq(identity.image_size_bytes, 0x36c00u);
}

Test(file_identity, has_guids_in_printed_order)
{
	sample_pdb(&file, 1, 0);
	expect(SYM_IDENTITY_PDB, SAMPLE_GUID);
	cr_assert_eq(identity.age, 1u);
}

Test(file_identity, prefers_the_age_of_the_dbi_stream)
{
	sample_pdb(&file, 1, 3);
	expect(SYM_IDENTITY_PDB, SAMPLE_GUID);
	cr_assert_eq(identity.age, 3u);
}

Test(file_identity, reads_compressed_pdbs)
{
	sample_compressed_pdb(&file, 2);
	expect(SYM_IDENTITY_COMPRESSED_PDB, SAMPLE_GUID);
	cr_assert_eq(identity.age, 2u);
}

Test(file_identity, reads_portable_pdbs)
{
	sample_portable_pdb(&file);
	expect(SYM_IDENTITY_PORTABLE_PDB, SAMPLE_GUID);
	cr_assert_eq(identity.timestamp, 0x5cb7ac29u);
}

Test(file_identity, reads_the_signature_of_a_relative_map)
{
	buf_append_string(&file, SAMPLE_MAP);
	expect(SYM_IDENTITY_RELATIVE_MAP, SAMPLE_GUID);
	cr_assert_eq(identity.age, 1u);
}

Test(file_identity, reads_uuids_and_build_ids_of_other_systems)
{
	sample_macho(&file);
	expect(SYM_IDENTITY_MACHO, SAMPLE_GUID);
	buf_clear(&file);
	sample_wasm(&file);
	expect(SYM_IDENTITY_WASM, "deadbeef");
}

Test(file_identity, is_unknown_for_any_other_file)
{
	expect(SYM_IDENTITY_NONE, "");
	buf_append_string(&file, "<html>log in</html>");
	expect(SYM_IDENTITY_NONE, "");
	buf_clear(&file);
	buf_append_string(&file, "FFFFFFFF 00 0011\nFFFFFFFE 00 1\n");
	expect(SYM_IDENTITY_NONE, "");
}

/* Every truncation of every sample is rejected or has no identity; never the identity of the whole
 * file. */
static void refuse_every_cut(void)
{
	size_t whole = file.size_bytes;

	for (file.size_bytes = 0; file.size_bytes < whole; file.size_bytes++) {
		int code = identify();

		cr_assert(code == SYM_ERROR_FORMAT || identity.kind == SYM_IDENTITY_NONE,
			  "cut at %zu of %zu", file.size_bytes, whole);
		identity = (struct sym_identity){ .size = sizeof(identity) };
	}
}

Test(file_identity, rejects_truncated_elf_files)
{
	sample_elf(&file, &(struct sample_elf){ .build_id = sha_id, .has_text = true });
	refuse_every_cut();
}

Test(file_identity, rejects_truncated_images_and_pdbs)
{
	sample_pe(&file, 1, 2);
	refuse_every_cut();
	buf_clear(&file);
	sample_pdb(&file, 1, 1);
	refuse_every_cut();
	buf_clear(&file);
	sample_compressed_pdb(&file, 1);
	refuse_every_cut();
	buf_clear(&file);
	sample_portable_pdb(&file);
	refuse_every_cut();
}

Test(file_identity, reads_only_the_given_range)
{
	sample_elf(&file, &(struct sample_elf){ .build_id = sha_id, .has_text = true });
	int fd AUTO_CLOSE = content_file();
	size_t whole = file.size_bytes;

	cr_assert_eq(write(fd, "trailer", 7), 7);
	cr_assert_null(sym_identity_read(fd, whole, &identity));
	cr_assert_eq(identity.file_size_bytes, whole);
	struct sym_error *error = sym_identity_read(fd, whole - 1, &identity);

	cr_assert_not_null(error);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_FORMAT);
	sym_error_destroy(error);
}

Test(file_identity, writes_nothing_when_it_fails)
{
	identity.kind = 77;
	identity.size = 8;
	cr_assert_eq(identify(), SYM_ERROR_ARGUMENT);
	cr_assert_eq(identity.kind, 77u);
}

/* -------- sections -------- */

static int find_section(const char *name, uint64_t *offset, uint64_t *size_bytes)
{
	int fd AUTO_CLOSE = content_file();
	struct sym_error *error = sym_elf_section_find(fd, UINT64_MAX, name, offset, size_bytes);
	int code = error ? (int)sym_error_code(error) : 0;

	sym_error_destroy(error);
	return code;
}

Test(file_identity, finds_sections_that_have_bytes)
{
	uint64_t offset, size_bytes;

	sample_elf(&file, &(struct sample_elf){ .build_id = sha_id, .has_text = true });
	cr_assert_eq(find_section(".text", &offset, &size_bytes), 0);
	cr_assert_eq(offset, 0x180u);
	cr_assert_eq(size_bytes, 0x40u);
	cr_assert_eq(find_section(".debug_info", &offset, &size_bytes), SYM_ERROR_NOT_FOUND);
	cr_assert_eq(find_section(".tex", &offset, &size_bytes), SYM_ERROR_NOT_FOUND);
	cr_assert_eq(find_section("", &offset, &size_bytes), SYM_ERROR_NOT_FOUND);
}

Test(file_identity, rejects_sections_beyond_the_end)
{
	uint64_t offset, size_bytes;

	sample_elf(&file, &(struct sample_elf){ .build_id = sha_id, .has_text = true });
	/* Section headers begin at 0x2c0; the third is .text, its size at 32. */
	patch_u32(&file, 0x2c0 + 2 * 64 + 36, 1);
	cr_assert_eq(find_section(".text", &offset, &size_bytes), SYM_ERROR_FORMAT);
	cr_assert_eq(identify(), SYM_ERROR_FORMAT);
}
