/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/pe_unwind.h"

#include <criterion/criterion.h>

enum {
	RBX = 3,
	RBP = 6,
	RSP = 7,
	R15 = 15,
	RIP = 16,
	FUNCTION_BYTES = 200,
};

/*
 * The prolog that the JIT writes on Unix:
 *   0 push rbp; 1 push r15; 3 push rbx; 4 sub rsp, 24; 8 lea rbp, [rsp + 32]; 13
 * The frame register is rbp, 32 bytes above rsp.
 */
static const uint8_t frame_info[] = {
	0x01, 13,   5, 0x25, /* version 1; 13 bytes; 5 codes; rbp at rsp + 2 * 16 */
	13,   0x03,          /* after offset 13: set_fpreg */
	8,    0x22,          /* after offset 8: alloc 24 */
	4,    0x30,          /* after offset 4: push rbx */
	3,    0xf0,          /* after offset 3: push r15 */
	1,    0x50,          /* after offset 1: push rbp */
	0,    0,
};

struct info {
	const uint8_t *bytes;
	size_t size_bytes;
};

static const uint8_t *info_at(void *context, uint32_t rva, size_t *available_bytes_ret)
{
	const struct info *info = context;

	if (rva != 0x100)
		return NULL;
	*available_bytes_ret = info->size_bytes;
	return info->bytes;
}

static bool row_of(const uint8_t *bytes, size_t size_bytes, uint32_t offset, struct frame_row *ret)
{
	const struct pe_unwind_function function = { 0x1000, 0x1000 + FUNCTION_BYTES, 0x100 };
	struct info info = { bytes, size_bytes };

	return pe_unwind_row(&function, offset, info_at, &info, ret);
}

static void expect_cfa(const struct frame_row *row, unsigned int number, int32_t value)
{
	cr_expect_eq(row->cfa.kind, FRAME_REGISTER_OFFSET);
	cr_expect_eq(row->cfa.reg, number);
	cr_expect_eq(row->cfa.value, value);
	cr_expect_eq(row->registers[RIP].kind, FRAME_AT_OFFSET);
	cr_expect_eq(row->registers[RIP].value, -8);
}

static void expect_saved(const struct frame_row *row, unsigned int number, int32_t value)
{
	cr_expect_eq(row->registers[number].kind, value ? FRAME_AT_OFFSET : FRAME_SAME);
	cr_expect_eq(row->registers[number].value, value);
}

Test(pe_unwind, follows_a_prolog)
{
	static const struct {
		uint32_t offset;
		int32_t cfa, rbp, r15, rbx;
	} rows[] = {
		{ 0, 8, 0, 0, 0 },        { 1, 16, -16, 0, 0 },     { 3, 24, -16, -24, 0 },
		{ 4, 32, -16, -24, -32 }, { 8, 56, -16, -24, -32 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct frame_row row;

		cr_assert(row_of(frame_info, sizeof(frame_info), rows[i].offset, &row));
		expect_cfa(&row, RSP, rows[i].cfa);
		expect_saved(&row, RBP, rows[i].rbp);
		expect_saved(&row, R15, rows[i].r15);
		expect_saved(&row, RBX, rows[i].rbx);
	}
}

/* rsp = rbp - 32; the return address is 24 bytes and three registers above it. */
Test(pe_unwind, uses_the_frame_register_behind_the_prolog)
{
	struct frame_row row;

	cr_assert(row_of(frame_info, sizeof(frame_info), 13, &row));
	expect_cfa(&row, RBP, -32 + 24 + 24 + 8);
	expect_saved(&row, RBP, -16);
	expect_saved(&row, R15, -24);
	expect_saved(&row, RBX, -32);
}

Test(pe_unwind, knows_large_frames)
{
	static const uint8_t units_of_eight[] = { 0x01, 7, 2, 0, 7, 0x01, 0x00, 0x10 };
	static const uint8_t bytes[] = { 0x01, 7, 3, 0, 7, 0x11, 0x00, 0x00, 0x10, 0x00, 0, 0 };
	static const uint8_t large_frame_register[] = { 0x01, 7, 3, 0x05, 7, 0x0b,
							0x02, 0, 0, 0,    0, 0 };
	struct frame_row row;

	cr_assert(row_of(units_of_eight, sizeof(units_of_eight), 7, &row));
	expect_cfa(&row, RSP, 0x1000 * 8 + 8);
	cr_assert(row_of(bytes, sizeof(bytes), 7, &row));
	expect_cfa(&row, RSP, 0x100000 + 8);
	cr_assert(row_of(large_frame_register, sizeof(large_frame_register), 7, &row));
	expect_cfa(&row, RBP, -32 + 8);
}

Test(pe_unwind, knows_registers_that_are_saved_in_the_frame)
{
	/* sub rsp, 40; mov [rsp + 16], rbx */
	static const uint8_t info[] = { 0x01, 9, 3, 0, 9, 0x34, 2, 0, 4, 0x42, 0, 0 };
	struct frame_row row;

	cr_assert(row_of(info, sizeof(info), 9, &row));
	expect_cfa(&row, RSP, 48);
	expect_saved(&row, RBX, 16 - 48);
	cr_assert(row_of(info, sizeof(info), 4, &row));
	expect_saved(&row, RBX, 0);
}

/* mov [rsp + 0x100000], rbx; movaps [rsp + 0x20], xmm6; movaps [rsp + 0x30000], xmm7 */
Test(pe_unwind, knows_registers_that_are_saved_far_away_and_skips_those_of_vectors)
{
	static const uint8_t info[] = { 0x01, 40,   11,   0,    40,   0x35, 0x00, 0x00, 0x10, 0x00,
					30,   0x68, 0x02, 0x00, 20,   0x79, 0x00, 0x00, 0x03, 0x00,
					7,    0x11, 0x00, 0x00, 0x20, 0x00, 0,    0 };
	struct frame_row row;

	cr_assert(row_of(info, sizeof(info), 40, &row));
	expect_cfa(&row, RSP, 0x200000 + 8);
	expect_saved(&row, RBX, 0x100000 - 0x200000 - 8);
	cr_assert(row_of(info, sizeof(info), 39, &row));
	expect_cfa(&row, RSP, 0x200000 + 8);
	expect_saved(&row, RBX, 0);
}

Test(pe_unwind, refuses_infos_that_make_no_sense)
{
	static const uint8_t cut[] = { 0x01, 13, 5, 0x25, 13, 0x03 };
	static const uint8_t version_2[] = { 0x02, 0, 0, 0 };
	static const uint8_t unknown_code[] = { 0x01, 1, 1, 0, 1, 0x07, 0, 0 };
	static const uint8_t machine_frame[] = { 0x01, 1, 1, 0, 1, 0x0a, 0, 0 };
	static const uint8_t chained_to_itself[] = { 0x21, 0,    0, 0, 0, 0x10, 0, 0,
						     0xc8, 0x10, 0, 0, 0, 1,    0, 0 };
	static const uint8_t chained_to_nothing[] = { 0x21, 0, 0, 0, 0, 0x10, 0, 0, 0xc8, 0x10 };
	/* 16 times this offset of the frame register has more than 31 bits. */
	static const uint8_t frame_too_large[] = {
		0x01, 7, 3, 0x05, 7, 0x0b, 0, 0, 0x00, 0x08, 0, 0
	};
	/* Two frames of 4 GiB. */
	static const uint8_t two_too_large[] = { 0x01, 9,    6, 0,    9,    0x11, 0xff, 0xff,
						 0xff, 0xff, 7, 0x11, 0xff, 0xff, 0xff, 0xff };
	struct frame_row row;

	cr_expect(!row_of(chained_to_nothing, sizeof(chained_to_nothing), 0, &row));
	cr_expect(!row_of(frame_too_large, sizeof(frame_too_large), 7, &row));
	cr_expect(!row_of(two_too_large, sizeof(two_too_large), 9, &row));
	cr_expect(row_of(two_too_large, sizeof(two_too_large), 6, &row), "before them");
	cr_expect(!row_of(cut, sizeof(cut), 13, &row));
	cr_expect(!row_of(version_2, sizeof(version_2), 0, &row));
	cr_expect(!row_of(unknown_code, sizeof(unknown_code), 1, &row));
	cr_expect(!row_of(machine_frame, sizeof(machine_frame), 1, &row));
	cr_expect(!row_of(chained_to_itself, sizeof(chained_to_itself), 0, &row));
}

static bool epilog(const void *code, size_t size_bytes, struct frame_row *ret)
{
	return pe_unwind_epilog_row(code, size_bytes, 100, FUNCTION_BYTES, ret);
}

Test(pe_unwind, follows_an_epilog)
{
	/* add rsp, 24; pop rbx; pop r15; pop rbp; ret */
	static const uint8_t code[] = { 0x48, 0x83, 0xc4, 24, 0x5b, 0x41, 0x5f, 0x5d, 0xc3 };
	struct frame_row row;

	cr_assert(epilog(code, sizeof(code), &row));
	expect_cfa(&row, RSP, 24 + 24 + 8);
	expect_saved(&row, RBX, -32);
	expect_saved(&row, R15, -24);
	expect_saved(&row, RBP, -16);
	cr_assert(epilog(code + 5, sizeof(code) - 5, &row));
	expect_cfa(&row, RSP, 24);
	expect_saved(&row, RBX, 0);
	cr_assert(epilog(code + 8, sizeof(code) - 8, &row));
	expect_cfa(&row, RSP, 8);
}

Test(pe_unwind, follows_an_epilog_by_the_frame_register)
{
	static const uint8_t lea[] = { 0xc5, 0xf8, 0x77, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0x5d, 0xc3 };
	static const uint8_t mov[] = { 0x48, 0x8b, 0xe5, 0x5d, 0xc3 };
	struct frame_row row;

	cr_assert(epilog(lea, sizeof(lea), &row));
	expect_cfa(&row, RBP, 16);
	expect_saved(&row, RBX, -24);
	cr_assert(epilog(mov, sizeof(mov), &row));
	expect_cfa(&row, RBP, 16);
	expect_saved(&row, RBP, -16);
}

/* The displacement of a frame of 128 bytes and more has 32 bits. */
Test(pe_unwind, follows_epilogs_of_large_frames)
{
	static const uint8_t add[] = { 0x48, 0x81, 0xc4, 0x00, 0x10, 0, 0, 0x5d, 0xc3 };
	static const uint8_t lea[] = { 0x48, 0x8d, 0xa5, 0x00, 0xff, 0xff, 0xff, 0x5b, 0x5d, 0xc3 };
	struct frame_row row;

	cr_assert(epilog(add, sizeof(add), &row));
	expect_cfa(&row, RSP, 0x1000 + 8 + 8);
	expect_saved(&row, RBP, -16);
	cr_assert(epilog(lea, sizeof(lea), &row));
	expect_cfa(&row, RBP, -0x100 + 16 + 8);
	expect_saved(&row, RBX, -24);
}

Test(pe_unwind, takes_jumps_out_of_the_function_for_tail_calls)
{
	static const uint8_t near[] = { 0x5d, 0xeb, 0x70 };
	static const uint8_t near_inside[] = { 0x5d, 0xeb, 0x10 };
	static const uint8_t through_register[] = { 0x5d, 0x48, 0xff, 0xe0 };
	static const uint8_t far_away[] = { 0x5d, 0xe9, 0, 0, 1, 0 };
	static const uint8_t inside[] = { 0xe9, 0xf0, 0xff, 0xff, 0xff };
	struct frame_row row;

	cr_assert(epilog(through_register, sizeof(through_register), &row));
	expect_cfa(&row, RSP, 16);
	cr_assert(epilog(far_away, sizeof(far_away), &row));
	expect_cfa(&row, RSP, 16);
	cr_expect(!epilog(inside, sizeof(inside), &row));
	cr_expect(epilog(near, sizeof(near), &row), "100 + 3 + 112 is behind 200");
	cr_expect(!epilog(near_inside, sizeof(near_inside), &row));
}

Test(pe_unwind, does_not_take_other_code_for_an_epilog)
{
	static const uint8_t pop_and_go_on[] = { 0x5b, 0x90, 0x5d, 0xc3 };
	static const uint8_t cut[] = { 0x48, 0x83, 0xc4 };
	struct frame_row row;

	cr_expect(!epilog(pop_and_go_on, sizeof(pop_and_go_on), &row));
	cr_expect(!epilog(cut, sizeof(cut), &row));
	cr_expect(!epilog("", 0, &row));
}

Test(pe_unwind, follows_an_epilog_of_other_compilers_that_returns)
{
	static const uint8_t pops[] = { 0x5b, 0x5d, 0xc3 };
	static const uint8_t tail_call[] = { 0x5d, 0xe9, 0, 0, 1, 0 };
	struct frame_row row;

	cr_assert(pe_unwind_return_row(pops, sizeof(pops), &row));
	expect_cfa(&row, RSP, 24);
	expect_saved(&row, RBP, -16);
	cr_assert(pe_unwind_return_row(pops + 2, 1, &row));
	expect_cfa(&row, RSP, 8);
	cr_expect_eq(row.registers[RBP].kind, FRAME_SAME);
	cr_expect(!pe_unwind_return_row(tail_call, sizeof(tail_call), &row));
	cr_expect(!pe_unwind_return_row(pops, 2, &row));
}
