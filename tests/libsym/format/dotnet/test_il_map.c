/* SPDX-License-Identifier: MIT */
/* Maps from native to IL offsets, written by hand by the format, and the runtime's rule. */
#include "libsym/format/dotnet/il_map.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "libsym/format/dotnet/debug_info.h"
#include "tests/support/nibble_writer.h"

struct row {
	uint32_t native;
	int32_t il;
	unsigned int source;
};

static size_t put_nibble_map(struct nibbles *out, const struct row *rows, size_t count)
{
	uint32_t native = 0;

	put_number(out, (uint32_t)count);
	for (size_t i = 0; i < count; i++) {
		put_number(out, rows[i].native - native);
		put_number(out, (uint32_t)(rows[i].il + 3));
		put_number(out, rows[i].source);
		native = rows[i].native;
	}
	return end_byte(out);
}

static void put_bits(uint8_t *bytes, size_t *at, uint32_t value, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++, ++*at)
		bytes[*at / 8] |= (uint8_t)((value >> i & 1) << (*at % 8));
}

static size_t put_packed_map(struct nibbles *out, const struct row *rows, size_t count,
			     unsigned int source_bits, unsigned int native_bits,
			     unsigned int il_bits)
{
	uint32_t native = 0;
	size_t at;

	put_number(out, (uint32_t)count);
	put_number(out, native_bits - 1);
	put_number(out, il_bits - 1);
	at = end_byte(out) * 8;
	for (size_t i = 0; i < count; i++) {
		put_bits(out->bytes, &at, rows[i].source, source_bits);
		put_bits(out->bytes, &at, rows[i].native - native, native_bits);
		put_bits(out->bytes, &at, (uint32_t)(rows[i].il + 3), il_bits);
		native = rows[i].native;
	}
	return (at + 7) / 8;
}

/* ---- the formats ---- */

static const struct row rows[] = {
	{ 0, IL_OFFSET_PROLOG, 2 },
	{ 7, 0, 2 },
	{ 20, IL_OFFSET_NO_MAPPING, 2 },
	{ 40, 5, 0 },
	{ 300, 17, 2 },
	{ 310, IL_OFFSET_EPILOG, 2 },
};
enum {
	ROWS = sizeof(rows) / sizeof(rows[0])
};

static void expect_rows(struct il_map map)
{
	struct il_map_entry entry;
	size_t count = 0;

	for (; il_map_next(&map, &entry); count++) {
		cr_assert(lt(sz, count, ROWS));
		cr_expect(eq(u32, entry.native_offset, rows[count].native));
		cr_expect(eq(i32, entry.il_offset, rows[count].il));
		cr_expect_not(entry.is_call_instruction);
	}
	cr_expect_null(map.failure);
	cr_expect(eq(sz, count, ROWS));
}

Test(il_map, reads_all_three_forms)
{
	struct nibbles text = { 0 };
	size_t size = put_nibble_map(&text, rows, ROWS);

	expect_rows(il_map_begin(text.bytes, size, IL_MAP_NIBBLE));
	text = (struct nibbles){ 0 };
	size = put_packed_map(&text, rows, ROWS, 2, 9, 5);
	expect_rows(il_map_begin(text.bytes, size, IL_MAP_PACKED_2));
	text = (struct nibbles){ 0 };
	size = put_packed_map(&text, rows, ROWS, 3, 32, 32);
	expect_rows(il_map_begin(text.bytes, size, IL_MAP_PACKED_3));
}

Test(il_map, knows_call_instructions_by_their_source)
{
	static const struct row calls[] = { { 0, 0, 2 }, { 4, 3, 0x10 } };
	static const struct row packed[] = { { 0, 0, 2 }, { 4, 3, 1 } };
	struct nibbles text = { 0 };
	size_t size = put_nibble_map(&text, calls, 2);
	struct il_map map = il_map_begin(text.bytes, size, IL_MAP_NIBBLE);
	struct il_map_entry entry;
	uint32_t il;

	cr_assert(il_map_next(&map, &entry));
	cr_expect_not(entry.is_call_instruction);
	cr_assert(il_map_next(&map, &entry));
	cr_expect(entry.is_call_instruction);
	text = (struct nibbles){ 0 };
	size = put_packed_map(&text, packed, 2, 2, 4, 4);
	/* They do not count. */
	cr_expect(eq(int, il_map_find(il_map_begin(text.bytes, size, IL_MAP_PACKED_2), 5, &il),
		     IL_EXACT));
	cr_expect(eq(u32, il, 0));
}

static void expect_il(const struct row *map_rows, size_t count, uint32_t native,
		      enum il_quality quality, uint32_t il)
{
	struct nibbles text = { 0 };
	size_t size = put_nibble_map(&text, map_rows, count);
	uint32_t found = 12345;

	cr_expect(eq(int,
		     il_map_find(il_map_begin(text.bytes, size, IL_MAP_NIBBLE), native, &found),
		     quality),
		  "at %u", native);
	cr_expect(eq(u32, found, il), "at %u", native);
}

Test(il_map, follows_the_rule_of_the_runtime)
{
	expect_il(rows, ROWS, 0, IL_PROLOG, 0);
	expect_il(rows, ROWS, 6, IL_PROLOG, 0);
	expect_il(rows, ROWS, 7, IL_EXACT, 0);
	expect_il(rows, ROWS, 45, IL_EXACT, 5);
	expect_il(rows, ROWS, 309, IL_EXACT, 17);
	expect_il(rows, ROWS, 400, IL_PROLOG, 17); /* epilog: the greatest IL */
	/* Nothing is mapped there: the real entry before. */
	expect_il(rows, ROWS, 25, IL_NEAREST, 0);
}

Test(il_map, chooses_among_entries_at_one_native_offset)
{
	static const struct row same[] = { { 4, 9, 2 },
					   { 4, 6, 2 },
					   { 8, IL_OFFSET_NO_MAPPING, 2 },
					   { 8, 11, 2 },
					   { 12, 13, 2 },
					   { 12, IL_OFFSET_PROLOG, 2 },
					   { 16, 15, 2 },
					   { 16, IL_OFFSET_NO_MAPPING, 2 } };

	expect_il(same, 8, 2, IL_PROLOG, 0); /* before the first entry */
	expect_il(same, 8, 5, IL_EXACT, 6);
	expect_il(same, 8, 9, IL_EXACT, 11);
	expect_il(same, 8, 13, IL_PROLOG, 0);
	expect_il(same, 8, 17, IL_EXACT, 15);
}

/* ---- malformed ---- */

/* ---- rows ---- */

static void expect_addresses(struct buf *found, const uint64_t *wanted, size_t wanted_count)
{
	size_t count = 0;

	cr_assert_null(il_rows_settle(found, &count));
	cr_assert(eq(sz, count, wanted_count));
	for (size_t i = 0; i < count; i++) {
		uint64_t address;

		memcpy(&address, found->data + i * sizeof(address), sizeof(address));
		cr_expect(eq(u64, address, wanted[i]));
	}
	buf_deinit(found);
}

Test(il_map, has_a_row_where_the_answer_may_change)
{
	static const uint64_t wanted[] = { 0x1000, 0x1007, 0x1014, 0x1028, 0x112c };
	const struct il_code code = { 0x1000, 305 }; /* without the last entry */
	struct nibbles text = { 0 };
	size_t size = put_nibble_map(&text, rows, ROWS);
	struct buf found;

	buf_init(&found, 4096);
	/* Twice: equal rows are dropped. */
	for (int i = 0; i < 2; i++)
		il_map_append_rows(il_map_begin(text.bytes, size, IL_MAP_NIBBLE), code, &found);
	expect_addresses(&found, wanted, 5);
}

Test(il_map, has_no_row_for_a_call_instruction)
{
	static const struct il_map_entry entries[] = { { 4, 3, false },
						       { 9, 5, true },
						       { 12, 7, false } };
	static const uint64_t wanted[] = { 16, 20, 28 };
	struct buf found;

	buf_init(&found, 4096);
	il_entries_append_rows(entries, 3, (struct il_code){ 16, 100 }, &found);
	expect_addresses(&found, wanted, 3);
}

Test(il_map, says_when_there_are_too_many_rows)
{
	struct sym_error *error;
	struct buf found;
	size_t count;

	buf_init(&found, 4);
	il_entries_append_rows(NULL, 0, (struct il_code){ 0, 100 }, &found);
	error = il_rows_settle(&found, &count);
	cr_expect(eq(int, sym_error_code(error), SYM_ERROR_LIMIT));
	sym_error_destroy(error);
	buf_deinit(&found);
}

Test(il_map, gives_nothing_for_a_cut_map)
{
	struct nibbles text = { 0 };
	size_t size = put_packed_map(&text, rows, ROWS, 2, 9, 5);
	uint32_t il;

	for (size_t cut = 0; cut < size; cut++) {
		uint8_t bytes[256];

		memcpy(bytes, text.bytes, cut);
		cr_expect(eq(int, il_map_find(il_map_begin(bytes, cut, IL_MAP_PACKED_2), 45, &il),
			     IL_NONE),
			  "cut at %zu", cut);
	}
	text = (struct nibbles){ 0 };
	size = put_nibble_map(&text, rows, ROWS);
	for (size_t cut = 0; cut + 1 < size; cut++)
		cr_expect(eq(int,
			     il_map_find(il_map_begin(text.bytes, cut, IL_MAP_NIBBLE), 45, &il),
			     IL_NONE),
			  "cut at %zu", cut);
}

Test(il_map, refuses_counts_and_widths_beyond_all_reason)
{
	struct nibbles text = { 0 };
	uint32_t il;

	put_number(&text, 0xffffffff);
	cr_expect(eq(int, il_map_find(il_map_begin(text.bytes, 200, IL_MAP_NIBBLE), 0, &il),
		     IL_NONE));
	text = (struct nibbles){ 0 };
	put_number(&text, 1);
	put_number(&text, 32);
	put_number(&text, 3);
	cr_expect(eq(int, il_map_find(il_map_begin(text.bytes, 200, IL_MAP_PACKED_2), 0, &il),
		     IL_NONE));
	memset(&text, 0xff, sizeof(text));
	cr_expect(eq(int, il_map_find(il_map_begin(text.bytes, 200, IL_MAP_PACKED_3), 0, &il),
		     IL_NONE));
}

/* ---- debug information ---- */

static struct debug_info info_of(struct nibbles *text, size_t chunk_bytes,
				 enum debug_info_form form)
{
	return debug_info_read(text->bytes, end_byte(text) + chunk_bytes, form);
}

Test(debug_info, finds_the_map_of_every_form)
{
	struct nibbles text = { 0 };
	struct debug_info info;

	put_number(&text, 20);
	put_number(&text, 9);
	info = info_of(&text, 29, DEBUG_INFO_R2R_NIBBLE);
	cr_expect_null(info.failure);
	cr_expect(eq(sz, (size_t)(info.bounds - text.bytes), 2));
	cr_expect(eq(sz, info.bounds_bytes, 20));
	/* The variables are not needed. */
	cr_expect_null(info_of(&text, 20, DEBUG_INFO_R2R_FAT).failure);
	cr_expect(info_of(&text, 19, DEBUG_INFO_R2R_PACKED).is_short);
}

Test(debug_info, skips_what_comes_before_the_map)
{
	/* Flags 3; patchpoint information with 2 locals (40 + 8 bytes); 5 bytes of rich
	 * information. */
	uint8_t bytes[256] = { 3 };
	struct debug_info info;

	bytes[1 + 16] = 2;
	bytes[49] = 5;
	bytes[58] = 0x24; /* 4 bytes of bounds, 2 of variables */
	info = debug_info_read(bytes, 65, DEBUG_INFO_JIT_PACKED);
	cr_expect_null(info.failure);
	cr_expect(eq(sz, (size_t)(info.rich - bytes), 53));
	cr_expect(eq(sz, info.rich_bytes, 5));
	cr_expect(eq(sz, (size_t)(info.bounds - bytes), 59));
	cr_expect(eq(sz, info.bounds_bytes, 4));
	bytes[0] = 4;
	cr_expect_not_null(debug_info_read(bytes, 65, DEBUG_INFO_JIT_PACKED).failure);
}

/* A profiler rewrote the IL: the map of the original IL counts. */
Test(debug_info, prefers_the_map_of_the_original_il)
{
	struct nibbles text = { 0 };
	struct debug_info info;

	put_number(&text, 0); /* the flags: a byte of zeros */
	put_number(&text, 0);
	put_number(&text, 0xffffffff);
	put_number(&text, 6);
	put_number(&text, 4);
	put_number(&text, 3);
	info = info_of(&text, 13, DEBUG_INFO_JIT_PACKED);
	cr_expect_null(info.failure);
	cr_expect(eq(sz, (size_t)(info.bounds - text.bytes), end_byte(&text) + 6));
	cr_expect(eq(sz, info.bounds_bytes, 4));
	text = (struct nibbles){ 0 };
	for (uint32_t size = 0; size < 7; size++)
		put_number(&text, size == 0 ? 0 : size);
	/* 0, then bounds 1, variables 2, uninstrumented 3, patchpoint 4, rich 5, async 6 */
	info = info_of(&text, 15, DEBUG_INFO_R2R_FAT);
	cr_expect_null(info.failure);
	cr_expect(eq(sz, (size_t)(info.bounds - text.bytes), end_byte(&text) + 3));
	cr_expect(eq(sz, info.bounds_bytes, 3));
	cr_expect(eq(sz, (size_t)(info.rich - text.bytes), end_byte(&text) + 10));
}
