/* SPDX-License-Identifier: MIT */
#include "libsym/format/elf/frame_expression.h"

#include <criterion/criterion.h>

/* Register n is 100 * n up to 16; memory at an address holds the address plus 1. */
static bool read_register(void *context, uint64_t number, uint64_t *ret)
{
	(void)context;
	*ret = number * 100;
	return number <= 16;
}

static bool read_memory(void *context, uint64_t address, unsigned int size_bytes, uint64_t *ret)
{
	(void)context;
	*ret = size_bytes == 8 ? address + 1 : (address + 1) & ((1ull << size_bytes * 8) - 1);
	return address < 0x10000;
}

static const struct frame_expression_input input = { NULL, read_register, read_memory };

#define EXPECT(wanted, ...)                                                                        \
	do {                                                                                       \
		static const uint8_t code_[] = { __VA_ARGS__ };                                    \
		uint64_t value_ = 0;                                                               \
		cr_expect(frame_expression_evaluate(reader_over(code_, sizeof(code_)), &input,     \
						    true, 7, &value_));                            \
		cr_expect_eq(value_, (uint64_t)(wanted));                                          \
	} while (0)

#define EXPECT_REFUSED(...)                                                                        \
	do {                                                                                       \
		static const uint8_t code_[] = { __VA_ARGS__ };                                    \
		uint64_t value_;                                                                   \
		cr_expect(!frame_expression_evaluate(reader_over(code_, sizeof(code_)), &input,    \
						     false, 0, &value_));                          \
	} while (0)

Test(frame_expression, reads_registers_memory_and_constants)
{
	EXPECT(708, 0x77, 8);                   /* breg7 8 */
	EXPECT(699, 0x77, 0x7f);                /* breg7 -1 */
	EXPECT(1601, 0x92, 16, 1);              /* bregx 16, 1 */
	EXPECT(701, 0x77, 0, 0x06);             /* breg7 0; deref */
	EXPECT((701 & 0xff), 0x77, 0, 0x94, 1); /* breg7 0; deref_size 1 */
	EXPECT(0x1234, 0x0a, 0x34, 0x12);       /* const2u */
	EXPECT(-2, 0x0b, 0xfe, 0xff);           /* const2s */
	EXPECT(-3, 0x11, 0x7d);                 /* consts */
	EXPECT(7, 0x96);                        /* what was on the stack */
}

/* The program that the linker writes for a PLT: the CFA moves by 8 after offset 11 of an entry. */
Test(frame_expression, evaluates_the_program_of_a_plt)
{
	/* breg7 8; breg16 0; lit15; and; lit11; ge; lit3; shl; plus; rip is 1600, 1600 & 15 is 0 */
	EXPECT(708, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
	/* rip + 12: & 15 is 12, so 8 more */
	EXPECT(716, 0x77, 8, 0x80, 12, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22);
}

Test(frame_expression, calculates)
{
	EXPECT(3, 0x38, 0x35, 0x1c);        /* 8 - 5 */
	EXPECT(-3, 0x35, 0x38, 0x1c);       /* 5 - 8 */
	EXPECT(40, 0x38, 0x35, 0x1e);       /* 8 * 5 */
	EXPECT(1, 0x38, 0x35, 0x1b);        /* 8 / 5 */
	EXPECT(3, 0x38, 0x35, 0x1d);        /* 8 mod 5 */
	EXPECT(-1, 0x31, 0x1f);             /* neg 1 */
	EXPECT(256, 0x31, 0x38, 0x24);      /* 1 << 8 */
	EXPECT(0, 0x31, 0x08, 64, 0x24);    /* 1 << 64 */
	EXPECT(1, 0x38, 0x33, 0x25);        /* 8 >> 3 */
	EXPECT(-1, 0x09, 0x80, 0x38, 0x26); /* -128 >> 8, arithmetic */
	EXPECT(5, 0x35, 0x38, 0x14, 0x13, 0x16, 0x13, 0x35, 0x22, 0x35, 0x1c, 0x38, 0x1c, 0x35,
	       0x22);
}

Test(frame_expression, reads_constants_of_all_widths)
{
	EXPECT(0x1122334455667788, 0x03, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11);
	EXPECT(0x80000000, 0x0c, 0, 0, 0, 0x80);                          /* const4u */
	EXPECT(-0x80000000ll, 0x0d, 0, 0, 0, 0x80);                       /* const4s */
	EXPECT(-2, 0x0e, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff); /* const8u */
	EXPECT(-3, 0x0f, 0xfd, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff); /* const8s */
	EXPECT(624485, 0x10, 0xe5, 0x8e, 0x26); /* constu; the number of DWARF's figure 5 */
	EXPECT(129, 0x31, 0x23, 0x80, 1);       /* 1; plus_uconst 128 */
}

Test(frame_expression, moves_values_on_the_stack)
{
	EXPECT(25, 0x35, 0x12, 0x1e);                  /* 5; dup; mul */
	EXPECT(1, 0x31, 0x32, 0x33, 0x15, 2);          /* 1 2 3; pick 2 */
	EXPECT(7, 0x31, 0x32, 0x33, 0x15, 3);          /* below them */
	EXPECT(4, 0x31, 0x32, 0x33, 0x17, 0x1c, 0x1c); /* rot: 3 1 2; 3 - (1 - 2) */
	EXPECT_REFUSED(0x31, 0x15, 1);                 /* pick of nothing */
	EXPECT_REFUSED(0x12);                          /* dup of nothing */
	EXPECT_REFUSED(0x31, 0x32, 0x17);              /* rot of two */
}

Test(frame_expression, combines_bits)
{
	EXPECT(15, 0x35, 0x3a, 0x21); /* 5 or 10 */
	EXPECT(10, 0x3f, 0x35, 0x27); /* 15 xor 5 */
	EXPECT(-1, 0x30, 0x20);       /* not 0 */
	EXPECT(4, 0x09, 0xfc, 0x19);  /* abs -4 */
	EXPECT(4, 0x34, 0x19);        /* abs 4 */
	/* The smallest number by -1: the processor would raise a signal. */
	EXPECT_REFUSED(0x0f, 0, 0, 0, 0, 0, 0, 0, 0x80, 0x09, 0xff, 0x1b);
}

/* DWARF 5, 2.5.1.5: operands are signed. */
Test(frame_expression, compares_signed_numbers)
{
	static const struct {
		uint8_t opcode;
		bool less, equal, greater; /* -1 and 1; 1 and 1; 1 and -1 */
	} rows[] = {
		{ 0x29, false, true, false }, /* eq */
		{ 0x2a, false, true, true },  /* ge */
		{ 0x2b, false, false, true }, /* gt */
		{ 0x2c, true, true, false },  /* le */
		{ 0x2d, true, false, false }, /* lt */
		{ 0x2e, true, false, true },  /* ne */
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const uint8_t pairs[3][2] = { { 0xff, 1 }, { 1, 1 }, { 1, 0xff } };
		const bool wanted[3] = { rows[i].less, rows[i].equal, rows[i].greater };

		for (int j = 0; j < 3; j++) {
			const uint8_t code[] = { 0x09, pairs[j][0], 0x09, pairs[j][1],
						 rows[i].opcode };
			uint64_t value = 2;

			cr_assert(frame_expression_evaluate(reader_over(code, sizeof(code)), &input,
							    false, 0, &value));
			cr_expect_eq(value, wanted[j], "operation %#x, pair %d", rows[i].opcode, j);
		}
	}
}

Test(frame_expression, jumps)
{
	EXPECT(2, 0x31, 0x28, 1, 0, 0x31, 0x32);       /* lit1; bra +1; (lit1); lit2 */
	EXPECT(3, 0x30, 0x28, 2, 0, 0x33, 0x2f, 0, 0); /* lit0; bra; lit3; skip 0 */
}

Test(frame_expression, rejects_malformed_expressions)
{
	EXPECT_REFUSED(0x96);                   /* nothing on the stack */
	EXPECT_REFUSED(0x13);                   /* drop of nothing */
	EXPECT_REFUSED(0x31, 0x30, 0x1b);       /* 1 / 0 */
	EXPECT_REFUSED(0x31, 0x30, 0x1d);       /* 1 mod 0 */
	EXPECT_REFUSED(0x2f, 0xfd, 0xff);       /* skip to itself, without end */
	EXPECT_REFUSED(0x2f, 0xf0, 0xff);       /* skip before the beginning */
	EXPECT_REFUSED(0x92, 17, 0);            /* an unknown register */
	EXPECT_REFUSED(0x0c, 0, 0, 1, 0, 0x06); /* memory that cannot be read */
	EXPECT_REFUSED(0xe0);                   /* an operation of GNU's */
	EXPECT_REFUSED(0x31, 0x94, 3);          /* three bytes */
	EXPECT_REFUSED(0x31, 0x2f, 0xfc, 0xff); /* lit1 in a loop: the stack overflows */
}
