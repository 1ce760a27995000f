/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "libsym/clr/auxiliary_symbols.h"
#include "tests/support/fake_memory.h"

static const uint64_t table = 0x10000, texts = 0x20000, count_at = 0x30000;

/* Rows of 32 bytes with the name first, unlike in any runtime. */
static const struct layout_auxiliary layout = { table, count_at, 32, 24, 8 };

static void begin(struct fake_memory *fake)
{
	*fake = (struct fake_memory){ 0 };
	fake_memory_add(fake, table, 0x10000);
	fake_memory_add(fake, texts, 0x1000);
	fake_memory_add(fake, count_at, 0x1000);
}

static void put(struct fake_memory *fake, unsigned int index, uint64_t address, const char *name)
{
	uint64_t row = table + 32 * (uint64_t)index, text = texts + 128 * (uint64_t)index;

	fake_memory_put(fake, text, name, strlen(name) + 1);
	fake_memory_put_u64(fake, row + 24, address);
	fake_memory_put_u64(fake, row + 8, text);
	fake_memory_put_u32(fake, count_at, index + 1);
}

static struct auxiliary_symbols read_symbols(struct fake_memory *fake)
{
	AUTO_REMOTE_MEMORY struct remote_memory *memory = fake_memory_open(fake);
	struct auxiliary_symbols symbols;

	cr_assert_null(auxiliary_symbols_read(memory, &layout, &symbols));
	return symbols;
}

Test(auxiliary_symbols, lists_each_address_once_in_order)
{
	struct auxiliary_symbols symbols;
	struct fake_memory fake;

	begin(&fake);
	put(&fake, 0, 0x7000, "JIT_WriteBarrier");
	put(&fake, 1, 0x5000, "CORINFO_HELP_NEWFAST");
	put(&fake, 2, 0x5000, "CORINFO_HELP_NEWSFAST_ALIGN8");
	put(&fake, 3, 0x6000, "Other");
	symbols = read_symbols(&fake);
	cr_assert_eq(symbols.count, 3);
	cr_assert_eq(symbols.items[0].address, 0x5000);
	cr_assert_str_eq(symbols.items[0].name, "CORINFO_HELP_NEWFAST");
	cr_assert_eq(symbols.items[1].address, 0x6000);
	cr_assert_str_eq(symbols.items[2].name, "JIT_WriteBarrier");
	auxiliary_symbols_deinit(&symbols);
	fake_memory_deinit(&fake);
}

Test(auxiliary_symbols, leaves_out_invalid_entries)
{
	static const char *const names[] = {
		"", "two words", "\xc3\xa4", "new\nline",
		"a name that is longer than any that a runtime has, 56"
	};
	struct auxiliary_symbols symbols;
	struct fake_memory fake;

	begin(&fake);
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		put(&fake, i, 0x5000 + i, names[i]);
	put(&fake, 5, 0, "AtNothing");
	put(&fake, 6, 0x5006, "Nowhere");
	fake_memory_put_u64(&fake, table + 32 * 6 + 8, 0x900000);
	put(&fake, 7, 0x5007, "Good");
	symbols = read_symbols(&fake);
	cr_assert_eq(symbols.count, 1);
	cr_assert_str_eq(symbols.items[0].name, "Good");
	auxiliary_symbols_deinit(&symbols);
	fake_memory_put_u32(&fake, count_at, UINT32_MAX);
	symbols = read_symbols(&fake);
	cr_assert_eq(symbols.count, 0);
	auxiliary_symbols_deinit(&symbols);
	fake_memory_deinit(&fake);
}

Test(auxiliary_symbols, is_empty_when_nothing_can_be_read)
{
	struct fake_memory fake = { 0 };
	struct auxiliary_symbols symbols;

	fake_memory_add(&fake, 0x900000, 0x1000);
	symbols = read_symbols(&fake);
	cr_assert_eq(symbols.count, 0);
	auxiliary_symbols_deinit(&symbols);
	fake_memory_deinit(&fake);
}
