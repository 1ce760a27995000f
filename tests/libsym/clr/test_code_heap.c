/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <string.h>

#include "libsym/clr/code_heap.h"
#include "tests/support/fake_memory.h"

/* Offsets unlike those of any runtime: what is found is found through the layout. */
static const struct layout layout = {
	.range_map_address = 0x100000,
	.stub_kind_last = 15,
	.range_section_map = { .top_level_data = 16 },
	.fragment = { .next = 24, .range_begin = 0, .range_end_open = 8, .range_section = 16 },
	.range_section = { .range_begin = 8, .range_end_open = 16, .flags = 0, .heap_list = 24 },
	.code_heap = { .start_address = 0, .end_address = 8, .map_base = 16, .header_map = 24 },
	.code_header = { .method_desc = 8,
			 .unwind_count = 0,
			 .unwind_infos = 16,
			 .read_bytes = 24 },
	.runtime_function = { .size_bytes = 12, .begin = 0, .last = 4 },
};

enum {
	TOP = 0x100010,
	NODES = 0x200000, /* levels 4 to 1, a page each */
	FRAGMENT = 0x300000,
	SECTION = 0x300100,
	HEAP = 0x300200,
	OTHER_FRAGMENT = 0x300400,
	FREED_SECTION = 0x300500,
	NIBBLES = 0x301000,
	HEADER = 0x302000,
	CODE = 0x400000,
	CODE_END = 0x410000,
};

/* One section that is a code heap from CODE, with one method of two pieces at CODE + 0x40. */
static void build(struct fake_memory *fake)
{
	fake_memory_add(fake, 0x100000, 0x1000);
	fake_memory_add(fake, NODES, 0x4000);
	fake_memory_add(fake, FRAGMENT, 0x3000);
	fake_memory_add(fake, CODE, CODE_END - CODE);
	fake_memory_put_u64(fake, TOP + 8, NODES | 1); /* bit 0 is a flag */
	for (uint64_t level = 0; level < 3; level++)
		fake_memory_put_u64(fake, NODES + level * 0x1000, NODES + (level + 1) * 0x1000);
	fake_memory_put_u64(fake, NODES + 0x3000 + 40, FRAGMENT);
	fake_memory_put_u64(fake, FRAGMENT, CODE);
	fake_memory_put_u64(fake, FRAGMENT + 8, CODE_END);
	fake_memory_put_u64(fake, FRAGMENT + 16, SECTION);
	fake_memory_put_u32(fake, SECTION, CODE_SECTION_HEAP);
	fake_memory_put_u64(fake, SECTION + 8, CODE);
	fake_memory_put_u64(fake, SECTION + 16, CODE_END);
	fake_memory_put_u64(fake, SECTION + 24, HEAP);
	fake_memory_put_u64(fake, HEAP, CODE);
	fake_memory_put_u64(fake, HEAP + 8, CODE + 0x800);
	fake_memory_put_u64(fake, HEAP + 16, CODE);
	fake_memory_put_u64(fake, HEAP + 24, NIBBLES);
	fake_memory_put_u32(fake, NIBBLES, 0x00100000); /* third nibble: 64 bytes in */
	fake_memory_put_u32(fake, NIBBLES + 4,
			    0x0000000a); /* covered by a block that began earlier */
	fake_memory_put_u32(fake, NIBBLES + 8, 0x20000000); /* first nibble, second word */
	fake_memory_put_u64(fake, CODE + 0x38, HEADER);
	fake_memory_put_u64(fake, CODE + 0x200 + 4 - 8, 9); /* a stub */
	fake_memory_put_u32(fake, HEADER, 2);
	fake_memory_put_u64(fake, HEADER + 8, 0x12345678);
	fake_memory_put_u32(fake, HEADER + 16, 0x40);
	fake_memory_put_u32(fake, HEADER + 20, 0x60);
	fake_memory_put_u32(fake, HEADER + 28, 0x60);
	fake_memory_put_u32(fake, HEADER + 32, 0x75);
}

static struct sym_error *read_map(struct remote_memory *memory, struct code_map *map)
{
	*map = (struct code_map){ 0 };
	return code_map_read(memory, &layout, map);
}

static enum code_block_kind read_block_by(const struct layout *by, struct remote_memory *memory,
					  const struct code_map *map, size_t index,
					  struct code_method *method, uint32_t *stub)
{
	const struct code_block *block = &map->blocks[index];
	bool again = true;

	for (;;) {
		uint64_t header;
		enum code_block_kind kind = code_block_read_head(memory, by, block, &header);

		*stub = (uint32_t)header;
		if (kind == CODE_BLOCK_METHOD)
			kind = code_block_read_method(memory, by, map, block, header, method);
		if (kind != CODE_BLOCK_PENDING)
			return kind;
		cr_assert_null(remote_memory_fetch(memory, &again));
		cr_assert(again);
	}
}

static enum code_block_kind read_block(struct remote_memory *memory, const struct code_map *map,
				       size_t index, struct code_method *method, uint32_t *stub)
{
	return read_block_by(&layout, memory, map, index, method, stub);
}

Test(code_heap, finds_methods_and_stubs_through_the_layout_alone)
{
	struct fake_memory fake = { 0 };
	struct remote_memory *memory AUTO_REMOTE_MEMORY = fake_memory_open(&fake);
	struct code_method method = { 0 };
	struct code_map map;
	uint32_t stub = 0;

	build(&fake);
	cr_assert_null(read_map(memory, &map));
	cr_assert_eq(map.section_count, 1);
	cr_assert_eq(map.block_count, 2);
	cr_assert_eq(map.blocks[0].start_address, CODE + 0x40);
	cr_assert_eq(map.blocks[0].limit_address, CODE + 0x204);
	cr_assert_eq(map.blocks[1].start_address, CODE + 0x204);
	cr_assert_eq(map.blocks[1].limit_address, CODE + 0x800);
	cr_assert_eq(read_block(memory, &map, 0, &method, &stub), CODE_BLOCK_METHOD);
	cr_assert_eq(method.size_bytes, 0x35);
	cr_assert_eq(method.method_desc, 0x12345678);
	cr_assert_eq(method.piece_count, 2);
	cr_assert_eq(read_block(memory, &map, 1, &method, &stub), CODE_BLOCK_STUB);
	cr_assert_str_eq(code_stub_name(stub), "<VSD_VTableStub>");
	cr_assert_null(code_stub_name(stub + 1));
	cr_assert_eq(map.sections[0].end_address, CODE_END);
	code_map_deinit(&map);
	fake_memory_deinit(&fake);
}

/*
 * A method with the unwind data of ARM64 in place of ends: a record at CODE + 0x3000 for the first
 * piece, packed for the second.
 */
static enum code_block_kind read_arm64(uint32_t record, uint32_t packed, uint64_t *size_bytes_ret)
{
	struct layout arm64 = layout;
	struct fake_memory fake = { 0 };
	struct remote_memory *memory AUTO_REMOTE_MEMORY = fake_memory_open(&fake);
	struct code_method method = { 0 };
	enum code_block_kind kind;
	struct code_map map;
	uint32_t stub = 0;

	arm64.runtime_function.size_bytes = 8;
	arm64.runtime_function.is_unwind_data = true;
	build(&fake);
	fake_memory_put_u32(&fake, HEADER + 20, 0x3000);
	fake_memory_put_u32(&fake, CODE + 0x3000, record);
	fake_memory_put_u32(&fake, HEADER + 24, 0x60);
	fake_memory_put_u32(&fake, HEADER + 28, packed);
	cr_assert_null(read_map(memory, &map));
	kind = read_block_by(&arm64, memory, &map, 0, &method, &stub);
	*size_bytes_ret = method.size_bytes;
	code_map_deinit(&map);
	fake_memory_deinit(&fake);
	return kind;
}

Test(code_heap, computes_sizes_from_the_unwind_data_of_arm64)
{
	static const uint32_t flags = 0xffc00000;
	uint64_t size_bytes;

	/* 8 words, then 3 words. */
	cr_expect_eq(read_arm64(flags | 8, 3 << 2 | 1 | 0xffffe000, &size_bytes),
		     CODE_BLOCK_METHOD);
	cr_expect_eq(size_bytes, 0x20 + 12);
	cr_expect_eq(read_arm64(flags | 9, 3 << 2 | 1, &size_bytes), CODE_BLOCK_BAD);
	cr_expect_eq(read_arm64(flags, 3 << 2 | 1, &size_bytes), CODE_BLOCK_BAD);
	cr_expect_eq(read_arm64(flags | 8, 1, &size_bytes), CODE_BLOCK_BAD);
	cr_expect_eq(read_arm64(flags | 8, 0x7f000000, &size_bytes), CODE_BLOCK_BAD);
}

Test(code_heap, rejects_a_header_that_contradicts_its_block)
{
	static const struct {
		uint64_t address;
		uint32_t value;
	} lies[] = {
		{ HEADER, 0 },                  /* no piece */
		{ HEADER, 5000 },               /* too many */
		{ HEADER + 8, 0x1234567c + 2 }, /* a MethodDesc is aligned */
		{ HEADER + 16, 0x44 },          /* begins elsewhere */
		{ HEADER + 20, 0x40 },          /* empty */
		{ HEADER + 28, 0x50 },          /* descends */
		{ HEADER + 32, 0x20000 },       /* leaves the section */
		{ CODE + 0x38, 0x666000 },      /* the header is unmapped */
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct fake_memory fake = { 0 };
		struct remote_memory *memory AUTO_REMOTE_MEMORY = fake_memory_open(&fake);
		struct code_method method;
		struct code_map map;
		uint32_t stub;

		build(&fake);
		fake_memory_put_u32(&fake, lies[i].address, lies[i].value);
		cr_assert_null(read_map(memory, &map));
		cr_assert_eq(read_block(memory, &map, 0, &method, &stub), CODE_BLOCK_BAD, "lie %zu",
			     i);
		code_map_deinit(&map);
		fake_memory_deinit(&fake);
	}
}

Test(code_heap, leaves_out_inconsistent_heaps_and_sections)
{
	static const struct {
		uint64_t address, value;
	} lies[] = {
		{ HEAP, CODE - 8 },          { HEAP + 8, CODE_END + 1 }, { HEAP + 16, CODE + 4096 },
		{ SECTION + 16, CODE },      { SECTION + 24, 0x777000 }, { HEAP + 24, 0x777000 },
		{ FRAGMENT + 16, 0x777000 },
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct fake_memory fake = { 0 };
		struct remote_memory *memory AUTO_REMOTE_MEMORY = fake_memory_open(&fake);
		struct code_map map;

		build(&fake);
		fake_memory_put_u64(&fake, lies[i].address, lies[i].value);
		cr_assert_null(read_map(memory, &map));
		cr_assert_eq(map.block_count, 0, "lie %zu", i);
		cr_assert_eq(map.bad_sections, 1, "lie %zu", i);
		code_map_deinit(&map);
		fake_memory_deinit(&fake);
	}
}

/*
 * The first word of memory that glibc has freed is a link. Here it makes the section cover the
 * other one, as found in .NET 10.
 */
Test(code_heap, leaves_out_a_freed_section_only)
{
	static const uint64_t begins[] = { 0x3f1f0c, 0x3f1000, CODE + 0x80000, CODE_END + 0x10000 };
	const uint64_t begin = CODE_END + 0x10000, end = CODE_END + 0x20000;

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		bool is_intact = begins[i] == begin;
		struct fake_memory fake = { 0 };
		struct remote_memory *memory AUTO_REMOTE_MEMORY = fake_memory_open(&fake);
		struct code_map map;

		build(&fake);
		fake_memory_put_u64(&fake, FRAGMENT + 24, OTHER_FRAGMENT);
		fake_memory_put_u64(&fake, OTHER_FRAGMENT, begin);
		fake_memory_put_u64(&fake, OTHER_FRAGMENT + 8, end);
		fake_memory_put_u64(&fake, OTHER_FRAGMENT + 16, FREED_SECTION);
		fake_memory_put_u32(&fake, FREED_SECTION, CODE_SECTION_RANGE_LIST);
		fake_memory_put_u64(&fake, FREED_SECTION + 8, begins[i]);
		fake_memory_put_u64(&fake, FREED_SECTION + 16, end);
		cr_assert_null(read_map(memory, &map));
		cr_assert_eq(map.section_count, is_intact ? 2 : 1, "section %zu", i);
		cr_assert_eq(map.block_count, 2, "section %zu", i);
		cr_assert_eq(map.bad_sections, !is_intact, "section %zu", i);
		code_map_deinit(&map);
		fake_memory_deinit(&fake);
	}
}

Test(code_heap, leaves_out_a_section_that_is_too_large)
{
	struct fake_memory fake = { 0 };
	struct remote_memory *memory AUTO_REMOTE_MEMORY = fake_memory_open(&fake);
	struct code_map map;

	build(&fake);
	fake_memory_put_u64(&fake, FRAGMENT + 8, 0x7f596b9cd000);
	fake_memory_put_u64(&fake, SECTION + 16, 0x7f596b9cd000);
	cr_assert_null(read_map(memory, &map));
	cr_expect_eq(map.section_count, 0);
	cr_expect_eq(map.bad_sections, 1);
	code_map_deinit(&map);
	fake_memory_deinit(&fake);
}

Test(code_heap, gives_up_on_lists_and_trees_without_an_end)
{
	struct fake_memory fake = { 0 };
	struct remote_memory *memory AUTO_REMOTE_MEMORY = fake_memory_open(&fake);
	struct sym_error *error;
	struct code_map map;

	build(&fake);
	fake_memory_put_u64(&fake, FRAGMENT + 24, FRAGMENT);
	error = read_map(memory, &map);
	cr_assert_not_null(error);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	sym_error_destroy(error);
	/* Every entry of a node leads to the same node. */
	for (uint64_t i = 0; i < 256; i++)
		for (uint64_t level = 0; level < 3; level++)
			fake_memory_put_u64(&fake, NODES + level * 0x1000 + i * 8,
					    NODES + (level + 1) * 0x1000);
	remote_memory_forget(memory);
	error = read_map(memory, &map);
	cr_assert_not_null(error);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	sym_error_destroy(error);
	fake_memory_deinit(&fake);
}
