/* SPDX-License-Identifier: MIT */
/* Machine code in a stand-in; what comes out is read by libelf. */
#include <criterion/criterion.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "mapgen/standin_elf.h"
#include "tests/support/elf_builder.h"

enum {
	PAGE = 4096,
	MOST_BYTES = 1 << 20
};

static const uint64_t place = 0x7f0000001000;

static struct standin_elf elf;
static struct buf file;

static void begin(void)
{
	standin_elf_init(&elf);
	buf_init(&file, MOST_BYTES);
	standin_elf_add(&elf, place, 0x40, "method", NULL);
}

static void end(void)
{
	standin_elf_deinit(&elf);
	buf_deinit(&file);
}

TestSuite(standin_elf, .init = begin, .fini = end);

/* A file of two pages of 'a' and 'b', the first of which is at `place`. */
static void add_code(uint64_t start, uint64_t stop)
{
	static char bytes[2 * PAGE];
	struct standin_code_source source = { .shift = -place };

	memset(bytes, 'a', PAGE);
	memset(bytes + PAGE, 'b', PAGE);
	source.fd = elf_builder_file(bytes, sizeof(bytes));
	standin_elf_add_code(&elf, &source, start, stop);
	close(source.fd);
}

/* Each section with code: its address and its bytes, one letter for all of them that are the same.
 */
static void expect_code(const char *expected)
{
	char found[200] = "";
	uint8_t id[STANDIN_ID_BYTES];
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf *read;

	cr_assert(standin_elf_finish(&elf, "origin", &file, id));
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

Test(standin_elf, has_no_code_where_none_was_added)
{
	expect_code("");
}

Test(standin_elf, code_lies_where_its_symbols_do)
{
	add_code(place + 0x10, place + 0x20);
	add_code(place + PAGE - 1, place + PAGE + 1);
	expect_code("10+10 a..a fff+2 a..b ");
}

Test(standin_elf, takes_as_much_code_as_can_be_read)
{
	add_code(place + 2 * PAGE - 0x10, place + 3 * PAGE);
	add_code(place + 4 * PAGE, place + 5 * PAGE);
	expect_code("1ff0+10 b..b ");
}

Test(standin_elf, leaves_out_code_beyond_the_limits_and_is_whole_all_the_same)
{
	add_code(place, place + 2ull * STANDIN_MOST_CODE_BYTES);
	add_code(place + 2, place + 1);
	for (uint64_t i = 0; i < STANDIN_MOST_CODE_BLOCKS + 3; i++)
		add_code(place + i % PAGE, place + i % PAGE + 1);
	cr_expect_eq(elf.blocks.size_bytes, STANDIN_MOST_CODE_BLOCKS * sizeof(struct standin_code));
	cr_expect(standin_elf_finish(&elf, "origin", &file, NULL));
}

Test(standin_elf, code_does_not_change_symbols)
{
	size_t symbols = elf.symbols.size_bytes;

	add_code(place, place + 0x40);
	cr_expect_eq(elf.symbols.size_bytes, symbols);
	cr_expect_eq(elf.low, place);
	cr_expect_eq(elf.high, place + 0x40);
	expect_code("0+40 a..a ");
}
