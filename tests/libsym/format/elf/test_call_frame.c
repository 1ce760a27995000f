/* SPDX-License-Identifier: MIT */
#include "libsym/format/elf/call_frame.h"

#include <criterion/criterion.h>

#include "tests/support/byte_writer.h"

/*
 * The function of the tests, as gcc compiles it at VADDR:
 *   0 push rbp; 1 mov rbp, rsp; 4 push rbx; 5 ... 20 pop rbx; 21 pop rbp; 22 ret
 * The programs are those of gcc, by the tables of DWARF 5, 7.24.
 */
enum {
	SECTION_VADDR = 0x1000,
	CODE_VADDR = 0x5000,
	CODE_BYTES = 23,
	RBX = 3,
	RBP = 6,
	RSP = 7,
	RIP = 16,
};

static const uint8_t cie_program[] = {
	0x0c, 7, 8, /* def_cfa rsp + 8 */
	0x90, 1,    /* offset rip, cfa - 8 */
};

static const uint8_t fde_program[] = {
	0x41, 0x0e, 16,    /* advance 1; def_cfa_offset 16 */
	0x86, 2,           /* offset rbp, cfa - 16 */
	0x43, 0x0d, 6,     /* advance 3; def_cfa_register rbp */
	0x41, 0x83, 3,     /* advance 1; offset rbx, cfa - 24 */
	0x50, 0xc3,        /* advance 16; restore rbx */
	0x41, 0x0c, 7,  8, /* advance 1; def_cfa rsp + 8 */
};

static void end_record(struct buf *section, size_t start)
{
	while ((section->size_bytes - start) % 4)
		put_u8(section, 0);
	patch_u32(section, start, (uint32_t)(section->size_bytes - start - 4));
}

static size_t put_cie(struct buf *section, const char *augmentation, const uint8_t *program,
		      size_t size_bytes)
{
	size_t start = section->size_bytes;

	put_u32(section, 0);
	put_u32(section, 0);
	put_u8(section, 1);
	buf_append(section, augmentation, strlen(augmentation) + 1);
	put_u8(section, 1);
	put_u8(section, 0x78); /* -8 */
	put_u8(section, RIP);
	put_u8(section, 1);
	put_u8(section, 0x1b); /* from here, signed 32 bits */
	buf_append(section, program, size_bytes);
	end_record(section, start);
	return start;
}

static size_t put_fde(struct buf *section, size_t cie, const uint8_t *program, size_t size_bytes)
{
	size_t start = section->size_bytes;

	put_u32(section, 0);
	put_u32(section, (uint32_t)(section->size_bytes - cie));
	put_u32(section, (uint32_t)(CODE_VADDR - (SECTION_VADDR + section->size_bytes)));
	put_u32(section, CODE_BYTES);
	put_u8(section, 0);
	buf_append(section, program, size_bytes);
	end_record(section, start);
	return start;
}

static struct call_frame_section over(const struct buf *section)
{
	return (struct call_frame_section){
		.records = reader_over(section->data, section->size_bytes),
		.vaddr = SECTION_VADDR,
	};
}

/* The row at an offset into the code, in a section with one function of this program. */
static bool row_of(const uint8_t *program, size_t size_bytes, const char *augmentation,
		   uint32_t offset, struct frame_row *ret)
{
	struct call_frame_function function;
	struct call_frame_section section;
	struct buf bytes;
	size_t cie, fde;
	bool found;

	buf_init(&bytes, 1 << 20);
	cie = put_cie(&bytes, augmentation, cie_program, sizeof(cie_program));
	fde = put_fde(&bytes, cie, program, size_bytes);
	section = over(&bytes);
	found = call_frame_read(&section, fde, &function) &&
		call_frame_row_at(&section, &function, CODE_VADDR + offset, ret);
	buf_deinit(&bytes);
	return found;
}

static void expect_row(uint32_t offset, unsigned int cfa_register, int32_t cfa_offset,
		       int32_t rbp_offset, int32_t rbx_offset)
{
	struct frame_row row;

	cr_assert(row_of(fde_program, sizeof(fde_program), "zR", offset, &row));
	cr_expect_eq(row.cfa.reg, cfa_register, "at %u", offset);
	cr_expect_eq(row.cfa.value, cfa_offset, "at %u", offset);
	cr_expect_eq(row.registers[RIP].value, -8);
	cr_expect_eq(row.registers[RBP].kind, rbp_offset ? FRAME_AT_OFFSET : FRAME_SAME);
	cr_expect_eq(row.registers[RBP].value, rbp_offset);
	cr_expect_eq(row.registers[RBX].kind, rbx_offset ? FRAME_AT_OFFSET : FRAME_SAME);
	cr_expect_eq(row.registers[RBX].value, rbx_offset);
}

Test(call_frame, gives_the_row_of_each_instruction)
{
	expect_row(0, RSP, 8, 0, 0);
	expect_row(1, RSP, 16, -16, 0);
	expect_row(3, RSP, 16, -16, 0);
	expect_row(4, RBP, 16, -16, 0);
	expect_row(5, RBP, 16, -16, -24);
	expect_row(20, RBP, 16, -16, -24);
	expect_row(21, RBP, 16, -16, 0);
	expect_row(22, RSP, 8, -16, 0);
}

Test(call_frame, has_no_row_outside_the_function)
{
	struct frame_row row;

	cr_expect(!row_of(fde_program, sizeof(fde_program), "zR", CODE_BYTES, &row));
	cr_expect(!row_of(fde_program, sizeof(fde_program), "zR", (uint32_t)-1, &row));
}

Test(call_frame, marks_signal_frames)
{
	struct frame_row row;

	cr_assert(row_of(fde_program, sizeof(fde_program), "zRS", 0, &row));
	cr_expect(row.is_signal_frame);
	cr_assert(row_of(fde_program, sizeof(fde_program), "zR", 0, &row));
	cr_expect(!row.is_signal_frame);
}

Test(call_frame, remembers_and_restores_states)
{
	static const uint8_t program[] = {
		0x41, 0x0e, 16, 0x0a, /* advance 1; def_cfa_offset 16; remember_state */
		0x41, 0x0e, 32,       /* advance 1; def_cfa_offset 32 */
		0x41, 0x0b,           /* advance 1; restore_state */
	};
	struct frame_row row;

	cr_assert(row_of(program, sizeof(program), "zR", 2, &row));
	cr_expect_eq(row.cfa.value, 32);
	cr_assert(row_of(program, sizeof(program), "zR", 3, &row));
	cr_expect_eq(row.cfa.value, 16);
}

Test(call_frame, records_the_position_of_expressions)
{
	static const uint8_t program[] = {
		0x0f, 3, 0x77, 8,    0x96, /* def_cfa_expression: breg7 8, nop */
		0x10, 3, 2,    0x76, 0x10, /* expression rbx: breg6 16 */
	};
	struct frame_row row;

	cr_assert(row_of(program, sizeof(program), "zR", 0, &row));
	cr_expect_eq(row.cfa.kind, FRAME_IS_EXPRESSION);
	cr_expect_eq(row.cfa.expression_bytes, 3);
	cr_expect_eq(row.registers[RBX].kind, FRAME_AT_EXPRESSION);
	cr_expect_eq(row.registers[RBX].expression_bytes, 2);
	cr_expect_eq(row.registers[RBX].value - row.cfa.value, 6);
}

Test(call_frame, marks_the_outermost_function)
{
	static const uint8_t program[] = { 0x07, 16 }; /* undefined rip */
	struct frame_row row;

	cr_assert(row_of(program, sizeof(program), "zR", 0, &row));
	cr_expect_eq(row.registers[RIP].kind, FRAME_UNDEFINED);
}

static struct frame_row row_at(const uint8_t *program, size_t size_bytes, uint32_t offset)
{
	struct frame_row row = { 0 };

	cr_assert(row_of(program, size_bytes, "zR", offset, &row));
	return row;
}

/* DWARF 5, 6.4.2.1. The operand of set_loc is encoded as the CIE says: from its own place. */
Test(call_frame, advances_by_numbers_of_all_widths)
{
	static const uint8_t program[] = {
		0x02, 2, 0x0e, 16,                 /* advance_loc1; def_cfa_offset 16 */
		0x03, 3, 0,    0x0e, 24,           /* advance_loc2 */
		0x04, 4, 0,    0,    0,  0x0e, 32, /* advance_loc4 */
		0x2e, 8,                           /* GNU_args_size: no matter for the row */
	};
	/* The CIE has 24 bytes, and 17 of the FDE are before its program. */
	static const uint8_t program_of_places[] = {
		0x01,
		(CODE_VADDR + 10 - SECTION_VADDR - 42) & 0xff,
		(CODE_VADDR + 10 - SECTION_VADDR - 42) >> 8,
		0,
		0,
		0x0e,
		64,
	};

	cr_expect_eq(row_at(program, sizeof(program), 1).cfa.value, 8);
	cr_expect_eq(row_at(program, sizeof(program), 2).cfa.value, 16);
	cr_expect_eq(row_at(program, sizeof(program), 4).cfa.value, 16);
	cr_expect_eq(row_at(program, sizeof(program), 5).cfa.value, 24);
	cr_expect_eq(row_at(program, sizeof(program), 8).cfa.value, 24);
	cr_expect_eq(row_at(program, sizeof(program), 9).cfa.value, 32);
	cr_expect_eq(row_at(program_of_places, sizeof(program_of_places), 9).cfa.value, 8);
	cr_expect_eq(row_at(program_of_places, sizeof(program_of_places), 10).cfa.value, 64);
}

/* DWARF 5, 6.4.2.2: offsets of the forms with _sf are signed, and multiplied by -8. */
Test(call_frame, reads_every_definition_of_the_cfa)
{
	static const uint8_t factored[] = { 0x12, RBP, 0x7d }; /* def_cfa_sf rbp, -3 */
	static const uint8_t offset[] = { 0x13, 0x7b };        /* def_cfa_offset_sf -5 */
	struct frame_row row = row_at(factored, sizeof(factored), 0);

	cr_expect_eq(row.cfa.reg, RBP);
	cr_expect_eq(row.cfa.value, 24);
	row = row_at(offset, sizeof(offset), 0);
	cr_expect_eq(row.cfa.reg, RSP);
	cr_expect_eq(row.cfa.value, 40);
}

/* DWARF 5, 6.4.2.3. */
Test(call_frame, reads_every_rule_of_a_register)
{
	static const uint8_t program[] = {
		0x05, 12,  3,             /* offset_extended: at cfa - 24 */
		0x11, 13,  0x7e,          /* offset_extended_sf: at cfa + 16 */
		0x14, 14,  4,             /* val_offset: is cfa - 32 */
		0x15, 15,  0x7f,          /* val_offset_sf: is cfa + 8 */
		0x09, RBX, 1,             /* register: in rdx */
		0x16, RBP, 2,    0x77, 8, /* val_expression: breg7 8 */
		0x05, 99,  1,             /* a register that does not matter */
		0x2d,                     /* negate_ra_state */
	};
	struct frame_row row = row_at(program, sizeof(program), 0);

	cr_expect_eq(row.registers[12].kind, FRAME_AT_OFFSET);
	cr_expect_eq(row.registers[12].value, -24);
	cr_expect_eq(row.registers[13].kind, FRAME_AT_OFFSET);
	cr_expect_eq(row.registers[13].value, 16);
	cr_expect_eq(row.registers[14].kind, FRAME_IS_OFFSET);
	cr_expect_eq(row.registers[14].value, -32);
	cr_expect_eq(row.registers[15].kind, FRAME_IS_OFFSET);
	cr_expect_eq(row.registers[15].value, 8);
	cr_expect_eq(row.registers[RBX].kind, FRAME_IN_REGISTER);
	cr_expect_eq(row.registers[RBX].value, 1);
	cr_expect_eq(row.registers[RBP].kind, FRAME_IS_EXPRESSION);
	cr_expect_eq(row.registers[RBP].expression_bytes, 2);
	cr_expect(row.is_ra_signed);
}

Test(call_frame, takes_rules_back)
{
	static const uint8_t program[] = {
		0x83, 3,    0x86, 2, /* offset rbx; offset rbp */
		0x41, 0x08, RBX,     /* advance 1; same_value rbx */
		0x41, 0x06, RBP,     /* advance 1; restore_extended rbp, as in the CIE */
		0x2d, 0x2d,          /* negate_ra_state, twice */
	};

	cr_expect_eq(row_at(program, sizeof(program), 0).registers[RBX].kind, FRAME_AT_OFFSET);
	cr_expect_eq(row_at(program, sizeof(program), 1).registers[RBX].kind, FRAME_SAME);
	cr_expect_eq(row_at(program, sizeof(program), 1).registers[RBP].kind, FRAME_AT_OFFSET);
	cr_expect_eq(row_at(program, sizeof(program), 2).registers[RBP].kind, FRAME_SAME);
	cr_expect(!row_at(program, sizeof(program), 2).is_ra_signed);
}

Test(call_frame, rejects_malformed_programs)
{
	static const uint8_t restore_of_nothing[] = { 0x0b };
	static const uint8_t unknown_opcode[] = { 0x3e };
	static const uint8_t expression_beyond_end[] = { 0x0f, 0x7f };
	static const uint8_t cfa_of_a_vector_register[] = { 0x0c, 0x40, 8 };
	static const uint8_t number_without_end[] = { 0x0e, 0x80, 0x80, 0x80, 0x80, 0x80,
						      0x80, 0x80, 0x80, 0x80, 0x80, 0x01 };
	struct frame_row row;

	cr_expect(!row_of(restore_of_nothing, 1, "zR", 0, &row));
	cr_expect(!row_of(unknown_opcode, 1, "zR", 0, &row));
	cr_expect(!row_of(expression_beyond_end, 2, "zR", 0, &row));
	cr_expect(!row_of(cfa_of_a_vector_register, 3, "zR", 0, &row));
	cr_expect(!row_of(number_without_end, sizeof(number_without_end), "zR", 0, &row));
}

Test(call_frame, bounds_remembered_states)
{
	uint8_t program[64];
	struct frame_row row;

	memset(program, 0x0a, sizeof(program));
	cr_expect(!row_of(program, sizeof(program), "zR", 0, &row));
}

Test(call_frame, rejects_unknown_augmentations)
{
	struct frame_row row;

	cr_expect(!row_of(fde_program, sizeof(fde_program), "zQ", 0, &row));
}
