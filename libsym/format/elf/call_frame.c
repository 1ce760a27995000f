/* SPDX-License-Identifier: MIT */
/*
 * Finds the row for one instruction by running two programs: first that of the CIE, which sets up
 * the rules at the start of a function, then that of the FDE up to the first instruction for code
 * after the wanted vaddr. The state is one frame_row; DW_CFA_remember_state and
 * DW_CFA_restore_state push and pop copies of it. A program that is malformed, or does something
 * that no compiler emits, has no row.
 */
#include "libsym/format/elf/call_frame.h"

#include "libsym/base/leb.h"
#include "libsym/format/elf/frame_record.h"

enum {
	MAX_REMEMBERED = 16, /* nested states; compilers nest two */
	MAX_STEPS = 100000,  /* instructions in one program */
};

enum {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_1 = 0x02,
	CFA_ADVANCE_2 = 0x03,
	CFA_ADVANCE_4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER = 0x0a,
	CFA_RECALL = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_REGISTER = 0x0d,
	CFA_DEF_OFFSET = 0x0e,
	CFA_DEF_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_NEGATE_RA_STATE = 0x2d, /* arm64 */
	CFA_ARGS_SIZE = 0x2e,
	CFA_ADVANCE = 1, /* this and the following: the top two bits */
	CFA_OFFSET = 2,
	CFA_RESTORE = 3,
};

/* The state while a program runs. */
struct run {
	const struct call_frame_section *section;
	const struct call_frame_function *function;
	struct reader code;
	uint64_t vaddr;
	struct frame_row row;
	struct frame_row initial; /* set by the CIE; for the restore instructions */
	struct frame_row remembered[MAX_REMEMBERED];
	unsigned int remembered_count;
	bool is_bad;
};

/* Offsets of a function have 32 bits. */
static bool read_record(struct reader *reader, struct frame_record *ret)
{
	return frame_record_read(reader, ret) && reader->position <= ret->end &&
	       ret->end <= UINT32_MAX;
}

static bool read_cie(const struct call_frame_section *section, size_t offset,
		     struct call_frame_function *ret, bool *has_size_ret)
{
	struct frame_cie cie;

	if (!frame_cie_read(section->records, offset, section->is_debug_frame, true, &cie) ||
	    cie.augmentation_bytes > cie.end - cie.augmentation_offset || cie.end > UINT32_MAX ||
	    cie.return_register >= FRAME_REGISTERS || cie.code_alignment > UINT16_MAX ||
	    cie.data_alignment > INT16_MAX || cie.data_alignment < INT16_MIN)
		return false;
	ret->encoding = cie.encoding;
	ret->is_signal_frame = cie.is_signal_frame;
	ret->initial_offset = (uint32_t)(cie.augmentation_offset + cie.augmentation_bytes);
	ret->initial_end = (uint32_t)cie.end;
	ret->code_alignment = (uint32_t)cie.code_alignment;
	ret->data_alignment = (int32_t)cie.data_alignment;
	ret->return_register = (uint8_t)cie.return_register;
	*has_size_ret = cie.has_augmentation_bytes;
	return true;
}

bool call_frame_read(const struct call_frame_section *section, size_t offset,
		     struct call_frame_function *ret)
{
	struct reader fde = section->records;
	struct frame_record record;
	uint64_t cie_offset, size_bytes, skipped;
	bool has_size;

	reader_seek(&fde, offset);
	if (!read_record(&fde, &record) || frame_record_is_cie(&record, section->is_debug_frame))
		return false;
	if (section->is_debug_frame)
		cie_offset = record.id;
	else if (record.id <= record.id_offset)
		cie_offset = record.id_offset - record.id;
	else
		return false;
	if (cie_offset > section->records.size_bytes ||
	    !read_cie(section, (size_t)cie_offset, ret, &has_size))
		return false;
	reader_end_at(&fde, record.end);
	ret->start_vaddr = frame_read_address(&fde, ret->encoding, section->vaddr, true);
	size_bytes = frame_read_number(&fde, ret->encoding, true);
	skipped = has_size ? leb_unsigned(&fde) : 0;
	if (!reader_ok(&fde) || skipped > reader_left(&fde) || !size_bytes ||
	    size_bytes > UINT64_MAX - ret->start_vaddr)
		return false;
	ret->end_vaddr = ret->start_vaddr + size_bytes;
	ret->program_offset = (uint32_t)(fde.position + skipped);
	ret->program_end = (uint32_t)record.end;
	return true;
}

bool call_frame_next(const struct call_frame_section *section, size_t offset, size_t *ret)
{
	struct reader records = section->records;
	struct frame_record record;

	reader_seek(&records, offset);
	if (!read_record(&records, &record))
		return false;
	*ret = record.end;
	return true;
}

static void set_rule(struct run *run, uint64_t number, struct frame_rule rule)
{
	/* Vector and flag registers do not matter for the stack. */
	if (number < FRAME_REGISTERS)
		run->row.registers[number] = rule;
}

static struct frame_rule offset_rule(struct run *run, enum frame_rule_kind kind, int64_t factored)
{
	int64_t value;

	if (__builtin_mul_overflow(factored, (int64_t)run->function->data_alignment, &value) ||
	    value > INT32_MAX || value < INT32_MIN)
		run->is_bad = true;
	return (struct frame_rule){ .kind = (uint8_t)kind, .value = (int32_t)value };
}

static struct frame_rule expression_rule(struct run *run, enum frame_rule_kind kind)
{
	uint64_t size_bytes = leb_unsigned(&run->code);
	size_t offset = run->code.position;

	reader_skip(&run->code, size_bytes > UINT16_MAX ? SIZE_MAX : (size_t)size_bytes);
	if (offset > INT32_MAX)
		run->is_bad = true;
	return (struct frame_rule){ .kind = (uint8_t)kind,
				    .expression_bytes = (uint16_t)size_bytes,
				    .value = (int32_t)offset };
}

static void set_cfa(struct run *run, uint64_t number, int64_t value)
{
	if (number >= FRAME_REGISTERS || value > INT32_MAX || value < INT32_MIN)
		run->is_bad = true;
	run->row.cfa = (struct frame_rule){ .kind = FRAME_REGISTER_OFFSET,
					    .reg = (uint8_t)number,
					    .value = (int32_t)value };
}

static void advance_address(struct run *run, uint64_t factored)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(factored, (uint64_t)run->function->code_alignment, &bytes) ||
	    __builtin_add_overflow(run->vaddr, bytes, &run->vaddr))
		run->vaddr = UINT64_MAX;
}

static void restore_state(struct run *run)
{
	if (!run->remembered_count) {
		run->is_bad = true;
		return;
	}
	run->row = run->remembered[--run->remembered_count];
}

static void remember_state(struct run *run)
{
	if (run->remembered_count == MAX_REMEMBERED) {
		run->is_bad = true;
		return;
	}
	run->remembered[run->remembered_count++] = run->row;
}

static void restore_register(struct run *run, uint64_t number)
{
	if (number < FRAME_REGISTERS)
		run->row.registers[number] = run->initial.registers[number];
}

/* Instructions that define the CFA. */
static bool run_cfa(struct run *run, unsigned int opcode)
{
	uint64_t number;

	switch (opcode) {
	case CFA_DEF_CFA:
		number = leb_unsigned(&run->code);
		set_cfa(run, number, (int64_t)leb_unsigned(&run->code));
		return true;
	case CFA_DEF_CFA_SF:
		number = leb_unsigned(&run->code);
		set_cfa(run, number,
			offset_rule(run, FRAME_AT_OFFSET, leb_signed(&run->code)).value);
		return true;
	case CFA_DEF_REGISTER:
		set_cfa(run, leb_unsigned(&run->code), run->row.cfa.value);
		return true;
	case CFA_DEF_OFFSET:
		set_cfa(run, run->row.cfa.reg, (int64_t)leb_unsigned(&run->code));
		return true;
	case CFA_DEF_OFFSET_SF:
		set_cfa(run, run->row.cfa.reg,
			offset_rule(run, FRAME_AT_OFFSET, leb_signed(&run->code)).value);
		return true;
	case CFA_DEF_EXPRESSION:
		run->row.cfa = expression_rule(run, FRAME_IS_EXPRESSION);
		return true;
	default:
		return false;
	}
}

/* Instructions that define where a register is. */
static bool run_register(struct run *run, unsigned int opcode)
{
	uint64_t number = leb_unsigned(&run->code);

	switch (opcode) {
	case CFA_OFFSET_EXTENDED:
		set_rule(run, number,
			 offset_rule(run, FRAME_AT_OFFSET, (int64_t)leb_unsigned(&run->code)));
		return true;
	case CFA_OFFSET_EXTENDED_SF:
		set_rule(run, number, offset_rule(run, FRAME_AT_OFFSET, leb_signed(&run->code)));
		return true;
	case CFA_VAL_OFFSET:
		set_rule(run, number,
			 offset_rule(run, FRAME_IS_OFFSET, (int64_t)leb_unsigned(&run->code)));
		return true;
	case CFA_VAL_OFFSET_SF:
		set_rule(run, number, offset_rule(run, FRAME_IS_OFFSET, leb_signed(&run->code)));
		return true;
	case CFA_RESTORE_EXTENDED:
		restore_register(run, number);
		return true;
	case CFA_UNDEFINED:
		set_rule(run, number, (struct frame_rule){ .kind = FRAME_UNDEFINED });
		return true;
	case CFA_SAME_VALUE:
		set_rule(run, number, (struct frame_rule){ .kind = FRAME_SAME });
		return true;
	case CFA_REGISTER:
		set_rule(run, number,
			 (struct frame_rule){
				 .kind = FRAME_IN_REGISTER,
				 .value = (int32_t)(leb_unsigned(&run->code) & INT32_MAX) });
		return true;
	case CFA_EXPRESSION:
		set_rule(run, number, expression_rule(run, FRAME_AT_EXPRESSION));
		return true;
	case CFA_VAL_EXPRESSION:
		set_rule(run, number, expression_rule(run, FRAME_IS_EXPRESSION));
		return true;
	default:
		return false;
	}
}

static void run_opcode(struct run *run, unsigned int opcode)
{
	switch (opcode) {
	case CFA_NOP:
		return;
	case CFA_SET_LOC:
		run->vaddr = frame_read_address(&run->code, run->function->encoding,
						run->section->vaddr, true);
		return;
	case CFA_ADVANCE_1:
		advance_address(run, reader_u8(&run->code));
		return;
	case CFA_ADVANCE_2:
		advance_address(run, reader_u16(&run->code));
		return;
	case CFA_ADVANCE_4:
		advance_address(run, reader_u32(&run->code));
		return;
	case CFA_REMEMBER:
		remember_state(run);
		return;
	case CFA_RECALL:
		restore_state(run);
		return;
	case CFA_ARGS_SIZE:
		leb_unsigned(&run->code);
		return;
	case CFA_NEGATE_RA_STATE:
		run->row.is_ra_signed = !run->row.is_ra_signed;
		return;
	default:
		if (!run_cfa(run, opcode) && !run_register(run, opcode))
			run->is_bad = true;
	}
}

/* Runs the program up to the first instruction for code after `vaddr`. */
static bool run_program(struct run *run, uint32_t offset, uint32_t end, uint64_t vaddr)
{
	run->code = run->section->records;
	reader_seek(&run->code, offset);
	reader_end_at(&run->code, end);
	for (int steps = 0; reader_left(&run->code); steps++) {
		unsigned int byte = reader_u8(&run->code);
		struct frame_row before = run->row;

		if (byte >> 6 == CFA_ADVANCE)
			advance_address(run, byte & 0x3f);
		else if (byte >> 6 == CFA_OFFSET)
			set_rule(run, byte & 0x3f,
				 offset_rule(run, FRAME_AT_OFFSET,
					     (int64_t)leb_unsigned(&run->code)));
		else if (byte >> 6 == CFA_RESTORE)
			restore_register(run, byte & 0x3f);
		else
			run_opcode(run, byte);
		if (run->is_bad || !reader_ok(&run->code) || steps == MAX_STEPS)
			return false;
		if (run->vaddr > vaddr) {
			run->row = before;
			return true;
		}
	}
	return reader_ok(&run->code);
}

bool call_frame_row_at(const struct call_frame_section *section,
		       const struct call_frame_function *function, uint64_t vaddr,
		       struct frame_row *ret)
{
	struct run run = { .section = section,
			   .function = function,
			   .vaddr = function->start_vaddr };

	if (vaddr < function->start_vaddr || vaddr >= function->end_vaddr)
		return false;
	run.row.cfa.kind = FRAME_UNDEFINED;
	if (!run_program(&run, function->initial_offset, function->initial_end, UINT64_MAX))
		return false;
	run.initial = run.row;
	run.vaddr = function->start_vaddr;
	if (!run_program(&run, function->program_offset, function->program_end, vaddr))
		return false;
	if (run.row.cfa.kind == FRAME_UNDEFINED)
		return false;
	*ret = run.row;
	ret->return_register = function->return_register;
	ret->is_signal_frame = function->is_signal_frame;
	frame_row_finish(ret);
	return true;
}
