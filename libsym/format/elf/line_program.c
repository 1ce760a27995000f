/* SPDX-License-Identifier: MIT */
/*
 * Runs a line number program. The machine has one current row; the program changes its fields and
 * appends copies of it to `rows`. DW_LNE_end_sequence ends a run of rows with ascending vaddrs, a
 * sequence. Sequences are then sorted by start, so a look-up finds the sequence first, and the row
 * inside it second. An unknown version or a malformed program has no rows at all.
 */
#include "libsym/format/elf/line_program.h"

#include <dwarf.h>
#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/base/leb.h"

enum {
	MAX_ROWS = 1 << 26
};

struct machine {
	struct reader code;
	struct line_program *program;
	struct line_row row;
	uint32_t first;     /* first row of this sequence */
	uint8_t step_bytes; /* of the shortest instruction */
	int8_t line_base;
	uint8_t line_range, opcode_base;
	uint8_t operands[256]; /* operand counts of standard opcodes */
};

void line_program_deinit(struct line_program *program)
{
	free(program->rows);
	free(program->sequences);
	*program = (struct line_program){ 0 };
}

static bool add_row(struct machine *machine)
{
	struct line_program *program = machine->program;

	if (program->row_count == MAX_ROWS ||
	    !grow_items((void **)&program->rows, &program->row_capacity, program->row_count,
			sizeof(*program->rows)))
		return false;
	program->rows[program->row_count++] = machine->row;
	return true;
}

static bool end_sequence(struct machine *machine)
{
	struct line_program *program = machine->program;
	uint32_t count = program->row_count - machine->first;
	uint64_t start = count ? program->rows[machine->first].vaddr : 0;

	if (!start || machine->row.vaddr <= start) {
		program->row_count = machine->first;
	} else {
		if (!grow_items((void **)&program->sequences, &program->sequence_capacity,
				program->sequence_count, sizeof(*program->sequences)))
			return false;
		program->sequences[program->sequence_count++] = (struct line_sequence){
			.start = start,
			.end = machine->row.vaddr,
			.first = machine->first,
			.count = count,
		};
	}
	machine->first = program->row_count;
	machine->row = (struct line_row){ .file = 1, .line = 1 };
	return true;
}

static bool run_extended(struct machine *machine)
{
	uint64_t bytes = leb_unsigned(&machine->code);
	struct reader code = machine->code;
	uint8_t opcode;

	if (!bytes || bytes > reader_left(&machine->code))
		return false;
	opcode = reader_u8(&code);
	reader_skip(&machine->code, (size_t)bytes);
	if (opcode == DW_LNE_end_sequence)
		return end_sequence(machine);
	if (opcode == DW_LNE_set_address)
		machine->row.vaddr = bytes > 8 ? reader_u64(&code) : reader_u32(&code);
	return true;
}

static void advance_address(struct machine *machine, uint64_t operation)
{
	machine->row.vaddr += operation * machine->step_bytes;
}

static bool run_special(struct machine *machine, uint8_t opcode)
{
	uint8_t adjusted = opcode - machine->opcode_base;

	advance_address(machine, adjusted / machine->line_range);
	machine->row.line += (uint32_t)(machine->line_base + adjusted % machine->line_range);
	return add_row(machine);
}

static bool run_standard(struct machine *machine, uint8_t opcode)
{
	struct reader *code = &machine->code;

	switch (opcode) {
	case DW_LNS_copy:
		return add_row(machine);
	case DW_LNS_advance_pc:
		advance_address(machine, leb_unsigned(code));
		return true;
	case DW_LNS_advance_line:
		machine->row.line += (uint32_t)leb_signed(code);
		return true;
	case DW_LNS_set_file:
		machine->row.file = (uint32_t)leb_unsigned(code);
		return true;
	case DW_LNS_set_column:
		machine->row.column = (uint32_t)leb_unsigned(code);
		return true;
	case DW_LNS_const_add_pc:
		advance_address(machine, (255 - machine->opcode_base) / machine->line_range);
		return true;
	case DW_LNS_fixed_advance_pc:
		machine->row.vaddr += reader_u16(code);
		return true;
	default:
		for (uint8_t i = 0; i < machine->operands[opcode]; i++)
			leb_unsigned(code);
		return true;
	}
}

static bool line_program_run(struct machine *machine)
{
	while (reader_ok(&machine->code) && reader_left(&machine->code)) {
		uint8_t opcode = reader_u8(&machine->code);
		bool done;

		if (!opcode)
			done = run_extended(machine);
		else if (opcode >= machine->opcode_base)
			done = run_special(machine, opcode);
		else
			done = run_standard(machine, opcode);
		if (!done)
			return false;
	}
	return reader_ok(&machine->code);
}

/* Skips the tables of directories and files: the header contains the offset of the program. */
static bool read_header(struct reader section, uint64_t offset, struct machine *machine)
{
	uint64_t unit_bytes, header_bytes;
	uint16_t version;
	bool is_64;

	if (offset > section.size_bytes)
		return false;
	reader_seek(&section, (size_t)offset);
	unit_bytes = reader_u32(&section);
	is_64 = unit_bytes == UINT32_MAX;
	if (is_64)
		unit_bytes = reader_u64(&section);
	if (!reader_ok(&section) || unit_bytes > reader_left(&section))
		return false;
	reader_end_at(&section, section.position + (size_t)unit_bytes);
	version = reader_u16(&section);
	if (version < 2 || version > 5)
		return false;
	/* Sizes of an address and of a segment selector. */
	if (version == 5)
		reader_skip(&section, 2);
	header_bytes = is_64 ? reader_u64(&section) : reader_u32(&section);
	if (!reader_ok(&section) || header_bytes > reader_left(&section))
		return false;
	machine->code = section;
	reader_skip(&machine->code, (size_t)header_bytes);
	machine->step_bytes = reader_u8(&section);
	/* Operations per VLIW instruction; none of our processors has them. */
	if (version >= 4 && reader_u8(&section) > 1)
		return false;
	reader_skip(&section, 1);
	machine->line_base = (int8_t)reader_u8(&section);
	machine->line_range = reader_u8(&section);
	machine->opcode_base = reader_u8(&section);
	for (unsigned int i = 1; i < machine->opcode_base; i++)
		machine->operands[i] = reader_u8(&section);
	return reader_ok(&section) && machine->line_range && machine->opcode_base;
}

void line_program_read(struct reader section, uint64_t offset, struct line_program *ret)
{
	struct line_program program = { 0 };
	struct machine machine = { .program = &program, .row = { .file = 1, .line = 1 } };

	if (!read_header(section, offset, &machine) || !line_program_run(&machine)) {
		line_program_deinit(&program);
		return;
	}
	ascending_sort_items(program.sequences, program.sequence_count, sizeof(*program.sequences));
	*ret = program;
}

const struct line_row *line_program_find(const struct line_program *program, uint64_t vaddr)
{
	const struct line_sequence *sequence;
	size_t count = ascending_items_up_to(program->sequences, program->sequence_count,
					     sizeof(*program->sequences), vaddr);

	if (!count || vaddr >= program->sequences[count - 1].end)
		return NULL;
	sequence = &program->sequences[count - 1];
	count = ascending_items_up_to(program->rows + sequence->first, sequence->count,
				      sizeof(*program->rows), vaddr);
	return count ? &program->rows[sequence->first + count - 1] : NULL;
}
