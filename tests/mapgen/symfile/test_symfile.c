/* SPDX-License-Identifier: MIT */
/* Machine code in a symbol file; libelf reads the result. */
#include <criterion/criterion.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "mapgen/symfile/symfile.h"
#include "tests/support/elf_builder.h"

enum {
	PAGE = 4096,
	MOST_BYTES = 1 << 20
};

static const uint64_t place = 0x7f0000001000;

static struct symfile elf;
static struct buf file;

static void begin(void)
{
	symfile_init(&elf);
	buf_init(&file, MOST_BYTES);
	symfile_add(&elf, place, 0x40, "method", NULL);
}

static void end(void)
{
	symfile_deinit(&elf);
	buf_deinit(&file);
}

TestSuite(symfile, .init = begin, .fini = end);

/* A file of two pages of 'a' and 'b'; the first page is at `place`. */
static void add_code(uint64_t start, uint64_t stop)
{
	static char bytes[2 * PAGE];
	struct symfile_code_source source = { .shift = -place };

	memset(bytes, 'a', PAGE);
	memset(bytes + PAGE, 'b', PAGE);
	source.fd = elf_builder_file(bytes, sizeof(bytes));
	symfile_add_code(&elf, &source, start, stop);
	close(source.fd);
}

/* The address and the bytes of each section with code; equal bytes are one letter. */
static void expect_code(const char *expected)
{
	char found[200] = "";
	uint8_t id[SYMFILE_ID_BYTES];
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf *read;

	cr_assert(symfile_finish(&elf, "origin", &file, id));
	elf_version(EV_CURRENT);
	read = elf_memory(file.data, file.size_bytes);
	while ((section = elf_nextscn(read, section))) {
		const char *bytes;
		size_t length = strlen(found);

		gelf_getshdr(section, &header);
		if (header.sh_type != SHT_PROGBITS)
			continue;
		bytes = elf_getdata(section, NULL)->d_buf;
		cr_expect_eq(header.sh_flags, SHF_ALLOC | SHF_EXECINSTR);
		snprintf(found + length, sizeof(found) - length, "%lx+%lx %c..%c ",
			 header.sh_addr - place, header.sh_size, bytes[0],
			 bytes[header.sh_size - 1]);
	}
	elf_end(read);
	cr_expect_str_eq(found, expected);
}

Test(symfile, has_no_code_where_none_was_added)
{
	expect_code("");
}

Test(symfile, code_lies_where_its_symbols_do)
{
	add_code(place + 0x10, place + 0x20);
	add_code(place + PAGE - 1, place + PAGE + 1);
	expect_code("10+10 a..a fff+2 a..b ");
}

Test(symfile, takes_as_much_code_as_can_be_read)
{
	add_code(place + 2 * PAGE - 0x10, place + 3 * PAGE);
	add_code(place + 4 * PAGE, place + 5 * PAGE);
	expect_code("1ff0+10 b..b ");
}

Test(symfile, leaves_out_code_beyond_the_limits_and_is_whole_all_the_same)
{
	add_code(place, place + 2ull * SYMFILE_MOST_CODE_BYTES);
	add_code(place + 2, place + 1);
	for (uint64_t i = 0; i < SYMFILE_MOST_CODE_BLOCKS + 3; i++)
		add_code(place + i % PAGE, place + i % PAGE + 1);
	cr_expect_eq(elf.blocks.size_bytes, SYMFILE_MOST_CODE_BLOCKS * sizeof(struct symfile_code));
	cr_expect(symfile_finish(&elf, "origin", &file, NULL));
}

Test(symfile, code_does_not_change_symbols)
{
	size_t symbols = elf.symbols.size_bytes;

	add_code(place, place + 0x40);
	cr_expect_eq(elf.symbols.size_bytes, symbols);
	cr_expect_eq(elf.low, place);
	cr_expect_eq(elf.high, place + 0x40);
	expect_code("0+40 a..a ");
}

/* All users have files in the same directory, and XXH3 has second preimages. */
Test(symfile, makes_ids_by_a_cryptographic_digest)
{
	/* printf one | sha512sum | cut -c1-32 (coreutils 9.1) */
	static const uint8_t expected[SYMFILE_ID_BYTES] = { 'd',  'n',  'm',  'g',  0x05,
							    0xf7, 0x03, 0x41, 0x07, 0x8a,
							    0xcf, 0x6a, 0x06, 0xd4, 0x23,
							    0xd2, 0x17, 0x20, 0xf9, 0x64 };
	struct buf content;
	uint8_t made[SYMFILE_ID_BYTES];

	buf_init(&content, 100);
	buf_append_string(&content, "one");
	symfile_make_id(&content, made);
	cr_expect_arr_eq(made, expected, SYMFILE_ID_BYTES);
	buf_deinit(&content);
}
