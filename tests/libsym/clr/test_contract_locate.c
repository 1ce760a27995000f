/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <elf.h>
#include <string.h>

#include "libsym/clr/contract_locate.h"
#include "libsym/limits.h"
#include "tests/support/clr_image.h"

/* Where the fields are that a test damages, from the base. */
enum {
	MAGIC = CLR_ELF_DESCRIPTOR,
	FLAGS = CLR_ELF_DESCRIPTOR + 8,
	TEXT_BYTES = CLR_ELF_DESCRIPTOR + 12,
	TEXT = CLR_ELF_DESCRIPTOR + 16,
	POINTER_COUNT = CLR_ELF_DESCRIPTOR + 24,
	POINTERS = CLR_ELF_DESCRIPTOR + 32,
	CHAIN = CLR_ELF_HASH + 28,
};

static struct sym_error *locate(struct clr_image *image, struct contract **ret)
{
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&image->fake);

	return contract_locate(memory, image->base, ret);
}

static void assert_found(struct clr_image *image)
{
	AUTO_CONTRACT struct contract *contract = NULL;
	struct sym_error *error = locate(image, &contract);
	uint64_t address;

	cr_assert_null(error, "%s", error ? sym_error_message(error) : "");
	cr_assert_null(contract_require(contract, "ExecutionManager",
					(struct contract_version){ 2, "c1" }));
	cr_assert_null(contract_pointer(contract, "ExecutionManagerCodeRangeMapAddress", &address));
	cr_assert_eq(address, image->layout.range_map_address);
	clr_image_deinit(image);
}

static void assert_refused(struct clr_image *image, enum sym_error_code code, const char *word)
{
	struct contract *contract = NULL;
	struct sym_error *error = locate(image, &contract);

	cr_assert_not_null(error, "accepted: %s", word);
	cr_assert_eq(sym_error_code(error), code, "%s", sym_error_message(error));
	cr_assert(strstr(sym_error_message(error), word), "%s", sym_error_message(error));
	sym_error_destroy(error);
	clr_image_deinit(image);
}

static void put_dynamic(struct clr_image *image, unsigned int index, uint64_t tag, uint64_t value)
{
	fake_memory_put_u64(&image->fake, image->base + CLR_ELF_DYNAMIC + 16 * index, tag);
	fake_memory_put_u64(&image->fake, image->base + CLR_ELF_DYNAMIC + 16 * index + 8, value);
}

Test(contract_locate, finds_the_descriptor_by_the_gnu_hash_table)
{
	struct clr_image image;

	clr_image_init(&image);
	assert_found(&image);
}

Test(contract_locate, reads_small_pointers_of_the_dynamic_section_as_vaddrs)
{
	struct clr_image image;

	clr_image_init(&image);
	put_dynamic(&image, 0, DT_SYMTAB, CLR_ELF_SYMBOLS);
	put_dynamic(&image, 1, DT_STRTAB, CLR_ELF_STRINGS);
	put_dynamic(&image, 2, DT_GNU_HASH, CLR_ELF_HASH);
	assert_found(&image);
}

Test(contract_locate, finds_the_descriptor_by_the_old_hash_table)
{
	/* One bucket with symbol 1, two chains; ELF gABI, "Hash Table". */
	const uint32_t table[] = { 1, 2, 1, 0, 0 };
	struct clr_image image;

	clr_image_init(&image);
	put_dynamic(&image, 2, DT_HASH, image.base + 0x500);
	fake_memory_put(&image.fake, image.base + 0x500, table, sizeof(table));
	assert_found(&image);
}

Test(contract_locate, reports_a_missing_descriptor)
{
	struct clr_image image;

	clr_image_init(&image);
	fake_memory_put(&image.fake, image.base + CLR_ELF_STRINGS + 1, "S", 1);
	assert_refused(&image, SYM_ERROR_NOT_FOUND, "no data contract");
	clr_image_init(&image);
	put_dynamic(&image, 2, DT_NULL, 0);
	assert_refused(&image, SYM_ERROR_NOT_FOUND, "no data contract");
}

Test(contract_locate, rejects_what_is_not_a_64_bit_elf_file)
{
	struct clr_image image;
	const uint8_t class_32 = ELFCLASS32;

	clr_image_init(&image);
	fake_memory_put(&image.fake, image.base, "MZ", 2);
	assert_refused(&image, SYM_ERROR_UNSUPPORTED, "ELF");
	clr_image_init(&image);
	fake_memory_put(&image.fake, image.base + EI_CLASS, &class_32, 1);
	assert_refused(&image, SYM_ERROR_UNSUPPORTED, "ELF");
}

Test(contract_locate, rejects_descriptors_of_another_kind)
{
	struct clr_image image;

	clr_image_init(&image);
	fake_memory_put_u64(&image.fake, image.base + MAGIC, 0x4343414443434E44);
	assert_refused(&image, SYM_ERROR_UNSUPPORTED, "magic");
	clr_image_init(&image);
	fake_memory_put_u32(&image.fake, image.base + FLAGS, 3); /* 32-bit */
	assert_refused(&image, SYM_ERROR_UNSUPPORTED, "flags");
}

Test(contract_locate, rejects_more_than_a_runtime_can_have)
{
	struct clr_image image;

	clr_image_init(&image);
	fake_memory_put_u32(&image.fake, image.base + TEXT_BYTES, UINT32_MAX);
	assert_refused(&image, SYM_ERROR_LIMIT, "too many");
	clr_image_init(&image);
	fake_memory_put_u32(&image.fake, image.base + POINTER_COUNT, UINT32_MAX);
	assert_refused(&image, SYM_ERROR_LIMIT, "too many");
}

Test(contract_locate, reports_pointers_to_unmapped_memory)
{
	static const struct {
		uint32_t place;
		uint64_t value;
		const char *word;
	} cases[] = {
		{ TEXT, 0xdead0000, "text" },
		{ TEXT, UINT64_MAX - 4, "text" },
		{ TEXT, 0, "text" },
		{ POINTERS, 0xdead0000, "pointers" },
		{ CLR_ELF_DYNAMIC + 8, 0x7fff00000000, "symbol table" },
		{ CLR_ELF_DYNAMIC + 24, 0x7fff00000000, "string table" },
		{ CLR_ELF_DYNAMIC + 40, 0x7fff00000000, "hash table" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct clr_image image;

		clr_image_init(&image);
		fake_memory_put_u64(&image.fake, image.base + cases[i].place, cases[i].value);
		assert_refused(&image, SYM_ERROR_IO, cases[i].word);
	}
}

Test(contract_locate, ends_on_a_chain_without_an_end)
{
	struct clr_image image;

	/* Chains of even values, up to and beyond the end of the memory. */
	clr_image_init(&image);
	for (uint32_t at = CHAIN; at < CLR_ELF_HASH + 0x200; at += 4)
		fake_memory_put_u32(&image.fake, image.base + at, 2);
	for (uint32_t at = CLR_ELF_DESCRIPTOR; at < CLR_ELF_BYTES; at += 4)
		fake_memory_put_u32(&image.fake, image.base + at, 2);
	for (uint32_t at = CLR_ELF_SYMBOLS; at < CLR_ELF_DESCRIPTOR; at += 4)
		fake_memory_put_u32(&image.fake, image.base + at, 2);
	assert_refused(&image, SYM_ERROR_IO, "hash table");
}
