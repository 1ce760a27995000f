/* SPDX-License-Identifier: MIT */
/* IL maps in the events of a rundown, made by hand as the runtime sends them. */
#include "libsym/clr/diagnostics/rundown_lines.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "tests/support/nettrace_builder.h"

static const char provider[] = "Microsoft-Windows-DotNETRuntimeRundown";

enum {
	METHOD = 1,
	MODULE,
	MAP,
};

static void begin(struct nettrace_builder *builder)
{
	nettrace_builder_init(builder);
	begin_block(builder, true);
	put_kind(builder, METHOD, provider, 144, 2);
	put_kind(builder, MODULE, provider, 154, 1);
	put_kind(builder, MAP, provider, 150, 1);
	end_block(builder, "MetadataBlock");
	begin_block(builder, true);
}

static void put_map(struct nettrace_builder *builder, uint64_t method, const uint32_t *ils,
		    const uint32_t *natives, uint16_t count, size_t missing_bytes)
{
	struct buf payload;

	buf_init(&payload, 1 << 16);
	put_u64(&payload, method);
	put_u64(&payload, 0);
	buf_append_char(&payload, 0);
	put_u16(&payload, count);
	for (uint16_t i = 0; i < count; i++)
		put_u32(&payload, ils[i]);
	for (uint16_t i = 0; i < count; i++)
		put_u32(&payload, natives[i]);
	put_event(builder, MAP, payload.data, payload.size_bytes - missing_bytes);
	buf_deinit(&payload);
}

static void put_method(struct nettrace_builder *builder, uint64_t method, uint64_t start)
{
	struct buf payload;

	buf_init(&payload, 1 << 16);
	put_u64(&payload, method);
	put_u64(&payload, 7);
	put_u64(&payload, start);
	put_u32(&payload, 64);
	put_u32(&payload, 0x06000005);
	put_u32(&payload, 8);
	put_utf16(&payload, "Ns.T");
	put_utf16(&payload, "M");
	put_utf16(&payload, "void ()");
	put_event(builder, METHOD, payload.data, payload.size_bytes);
	buf_deinit(&payload);
}

static void put_module(struct nettrace_builder *builder)
{
	struct buf payload;

	buf_init(&payload, 1 << 16);
	put_u64(&payload, 7);
	put_u64(&payload, 1);
	put_u32(&payload, 0);
	put_u32(&payload, 0);
	put_utf16(&payload, "/app/A.dll");
	put_event(builder, MODULE, payload.data, payload.size_bytes);
	buf_deinit(&payload);
}

static struct rundown_lines *end(struct nettrace_builder *builder)
{
	struct rundown_lines *lines = NULL;

	end_block(builder, "EventBlock");
	end_stream(builder);
	cr_assert_null(
		rundown_lines_parse(builder->stream.data, builder->stream.size_bytes, &lines));
	nettrace_builder_deinit(builder);
	return lines;
}

/* Sorted by IL, as the runtime sends them: prolog first. Two tiers of one method. */
Test(rundown_lines, gives_each_body_the_map_before_it)
{
	static const uint32_t ils[] = { 0xfffffffe, 0, 5 }, natives[] = { 0, 9, 4 };
	static const uint32_t later[] = { 3 }, places[] = { 2 };
	struct nettrace_builder builder;
	struct rundown_lines *lines;
	struct rundown_map map;
	uint32_t il;

	begin(&builder);
	put_map(&builder, 0x100, ils, natives, 3, 0);
	put_method(&builder, 0x100, 0x7000);
	put_map(&builder, 0x100, later, places, 1, 0);
	put_method(&builder, 0x100, 0x8000);
	put_method(&builder, 0x100, 0x9000); /* without a map */
	put_module(&builder);
	lines = end(&builder);
	cr_assert(rundown_lines_find(lines, 0x7000, 64, &map));
	cr_expect_str_eq(map.module_path, "/app/A.dll");
	cr_expect_str_eq(map.name, "M");
	cr_expect(eq(u32, map.token, 0x06000005));
	cr_assert(eq(sz, map.count, 3));
	cr_expect(eq(int, il_entries_find(map.entries, map.count, 5, &il), IL_EXACT));
	cr_expect(eq(u32, il, 5));
	cr_expect(eq(int, il_entries_find(map.entries, map.count, 20, &il), IL_EXACT));
	cr_expect(eq(u32, il, 0));
	cr_assert(rundown_lines_find(lines, 0x8000, 64, &map));
	cr_expect(eq(sz, map.count, 1));
	cr_expect_not(rundown_lines_find(lines, 0x9000, 64, &map));
	cr_expect_not(rundown_lines_find(lines, 0x7000, 63, &map));
	cr_expect_not(rundown_lines_find(lines, 0x7001, 64, &map));
	rundown_lines_close(lines);
}

Test(rundown_lines, uses_no_map_that_is_cut_or_of_another_method)
{
	static const uint32_t ils[] = { 0, 5 }, natives[] = { 0, 9 };
	static const uint32_t odd[] = { 0x80000000, 0 };
	struct nettrace_builder builder;
	struct rundown_lines *lines;
	struct rundown_map map;

	begin(&builder);
	put_map(&builder, 0x100, ils, natives, 2, 1);
	put_method(&builder, 0x100, 0x7000);
	put_map(&builder, 0x200, ils, natives, 2, 0);
	put_method(&builder, 0x100, 0x8000);
	put_map(&builder, 0x100, odd, natives, 2, 0);
	put_method(&builder, 0x100, 0x9000);
	lines = end(&builder);
	for (uint64_t start = 0x7000; start < 0xa000; start += 0x1000)
		cr_expect_not(rundown_lines_find(lines, start, 64, &map));
	rundown_lines_close(lines);
}
