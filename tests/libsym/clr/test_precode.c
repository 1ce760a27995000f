/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/clr/precode.h"
#include "tests/support/clr_image.h"

enum {
	FIXUPS = 0x30000000, /* a page of code, a page of data */
	STUBS = FIXUPS + 0x2000,
	END = STUBS + 0x2000,
	PAGE = 4096,
	FIXUP_BYTES = 24,
	STUB_BYTES = 16,
	TYPE_STUB = 4,
	TYPE_IMPORT = 5,
	TYPE_RETURN_BUFFER = 8,
};

/* jmp [rip + data]; mov r10, [rip + data + 8]; jmp [rip + data + 16]: what varies is not compared.
 */
static const uint8_t fixup[FIXUP_BYTES] = { 0xff, 0x25, 0, 0, 0, 0,    0x4c, 0x8b,
					    0x15, 0,    0, 0, 0, 0xff, 0x25 };
static const uint8_t stub[STUB_BYTES] = { 0x4c, 0x8b, 0x15, 0, 0, 0, 0, 0xff, 0x25 };

static void put_machine(struct clr_image *image, uint32_t page_bytes, uint8_t fixup_bytes,
			uint8_t stub_bytes)
{
	uint64_t machine = image->precodes.metadata_address + 16;
	const uint8_t sizes[] = { fixup_bytes, stub_bytes };
	const uint8_t types[] = { TYPE_STUB, TYPE_IMPORT, TYPE_RETURN_BUFFER };
	const uint8_t ignored[4] = { 1, 1, 1, 1 };

	fake_memory_put_u32(&image->fake, machine, page_bytes);
	fake_memory_put(&image->fake, machine + 4, sizes, sizeof(sizes));
	fake_memory_put(&image->fake, machine + 8, fixup, sizeof(fixup));
	fake_memory_put(&image->fake, machine + 32 + 2, ignored, sizeof(ignored));
	fake_memory_put(&image->fake, machine + 56, stub, sizeof(stub));
	fake_memory_put(&image->fake, machine + 80 + 3, ignored, sizeof(ignored));
	fake_memory_put(&image->fake, machine + 104, types, sizeof(types));
}

static void begin(struct clr_image *image)
{
	clr_image_init(image);
	put_machine(image, PAGE, FIXUP_BYTES, STUB_BYTES);
	fake_memory_add(&image->fake, FIXUPS, END - FIXUPS);
}

static void put_fixup(struct clr_image *image, uint32_t index, uint64_t method)
{
	uint64_t at = FIXUPS + index * (uint64_t)FIXUP_BYTES;

	fake_memory_put(&image->fake, at, fixup, sizeof(fixup));
	fake_memory_put_u32(&image->fake, at + 2, 0xffa + index); /* a byte range that varies */
	fake_memory_put_u64(&image->fake, at + PAGE + 8, method);
}

static void put_stub(struct clr_image *image, uint32_t index, uint8_t type, uint64_t secret)
{
	uint64_t at = STUBS + index * (uint64_t)STUB_BYTES;

	fake_memory_put(&image->fake, at, stub, sizeof(stub));
	fake_memory_put_u64(&image->fake, at + PAGE, secret);
	fake_memory_put(&image->fake, at + PAGE + 8, &type, 1);
}

static struct sym_error *read_precodes(struct clr_image *image, struct precodes *ret)
{
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(&image->fake);
	struct code_section section = { .begin_address = FIXUPS,
					.end_address = END,
					.flags = CODE_SECTION_RANGE_LIST };
	const struct code_map map = { .sections = &section, .section_count = 1 };

	return precodes_read(memory, &image->precodes, &map, ret);
}

static void assert_precode(const struct precodes *precodes, size_t index, uint64_t address,
			   uint32_t size_bytes, uint64_t method)
{
	cr_assert_lt(index, precodes->count);
	cr_assert_eq(precodes->items[index].address, address);
	cr_assert_eq(precodes->items[index].size_bytes, size_bytes);
	cr_assert_eq(precodes->items[index].method_desc, method);
}

Test(precode, finds_the_method_of_each_precode_and_its_page)
{
	struct clr_image image;
	struct precodes precodes;

	begin(&image);
	put_fixup(&image, 0, 0x1000);
	put_fixup(&image, 1, 0x2000);
	put_fixup(&image, PAGE / FIXUP_BYTES - 1, 0x3000);
	put_stub(&image, 0, TYPE_STUB, 0x4000);
	put_stub(&image, 1, TYPE_IMPORT, 0x5000);
	put_stub(&image, 2, TYPE_RETURN_BUFFER, 0x6000);
	cr_assert_null(read_precodes(&image, &precodes));
	cr_assert_eq(precodes.count, 8);
	assert_precode(&precodes, 0, FIXUPS, PAGE, 0);
	assert_precode(&precodes, 1, FIXUPS, FIXUP_BYTES, 0x1000);
	assert_precode(&precodes, 2, FIXUPS + FIXUP_BYTES, FIXUP_BYTES, 0x2000);
	assert_precode(&precodes, 3, FIXUPS + FIXUP_BYTES * (PAGE / FIXUP_BYTES - 1), FIXUP_BYTES,
		       0x3000);
	assert_precode(&precodes, 4, STUBS, PAGE, 0);
	assert_precode(&precodes, 5, STUBS, STUB_BYTES, 0x4000);
	assert_precode(&precodes, 6, STUBS + STUB_BYTES, STUB_BYTES, 0x5000);
	assert_precode(&precodes, 7, STUBS + 2 * STUB_BYTES, STUB_BYTES, 0x6000);
	precodes_deinit(&precodes);
	clr_image_deinit(&image);
}

Test(precode, recognises_only_valid_precodes)
{
	struct clr_image image;
	struct precodes precodes;
	const uint8_t other = 0x90;

	begin(&image);
	put_fixup(&image, 0, 0x1000);
	put_fixup(&image, 1, 0x2000);
	fake_memory_put(&image.fake, FIXUPS + FIXUP_BYTES + 6, &other, 1);
	put_fixup(&image, 2, 0);
	put_fixup(&image, 3, 0x3001); /* not a MethodDesc */
	put_stub(&image, 0, 99, 0x4000);
	cr_assert_null(read_precodes(&image, &precodes));
	cr_assert_eq(precodes.count, 3);
	assert_precode(&precodes, 1, FIXUPS, FIXUP_BYTES, 0x1000);
	precodes_deinit(&precodes);
	clr_image_deinit(&image);
}

Test(precode, leaves_out_missing_pages)
{
	struct clr_image image;
	struct precodes precodes;

	begin(&image);
	put_stub(&image, 0, TYPE_STUB, 0x4000);
	image.fake.regions[image.fake.region_count - 1].address = STUBS;
	image.fake.regions[image.fake.region_count - 1].size_bytes -= STUBS - FIXUPS;
	memmove(image.fake.regions[image.fake.region_count - 1].bytes,
		image.fake.regions[image.fake.region_count - 1].bytes + (STUBS - FIXUPS),
		END - STUBS);
	cr_assert_null(read_precodes(&image, &precodes));
	cr_assert_eq(precodes.count, 2);
	assert_precode(&precodes, 1, STUBS, STUB_BYTES, 0x4000);
	precodes_deinit(&precodes);
	clr_image_deinit(&image);
}

Test(precode, rejects_an_invalid_machine_description)
{
	static const struct {
		uint32_t page_bytes;
		uint8_t fixup_bytes, stub_bytes;
	} cases[] = {
		{ 0, 24, 24 },   { 100, 24, 24 }, { 4097, 24, 24 }, { 1u << 31, 24, 24 },
		{ PAGE, 0, 24 }, { PAGE, 24, 0 }, { PAGE, 25, 24 }, { PAGE, 24, 255 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct clr_image image;
		struct precodes precodes;
		struct sym_error *error;

		begin(&image);
		put_machine(&image, cases[i].page_bytes, cases[i].fixup_bytes, cases[i].stub_bytes);
		error = read_precodes(&image, &precodes);
		cr_assert(error && sym_error_code(error) == SYM_ERROR_UNSUPPORTED);
		sym_error_destroy(error);
		clr_image_deinit(&image);
	}
}

Test(precode, rejects_invalid_offsets_and_unmapped_descriptions)
{
	struct clr_image image;
	struct precodes precodes;
	struct sym_error *error;

	begin(&image);
	image.precodes.stub_bytes = 60000;
	error = read_precodes(&image, &precodes);
	cr_assert(error && sym_error_code(error) == SYM_ERROR_UNSUPPORTED);
	sym_error_destroy(error);
	image.precodes.stub_bytes = 56;
	image.precodes.metadata_address = 0xdead0000;
	error = read_precodes(&image, &precodes);
	cr_assert(error && sym_error_code(error) == SYM_ERROR_IO);
	sym_error_destroy(error);
	clr_image_deinit(&image);
}
