/* SPDX-License-Identifier: MIT */
/*
 * Call frame information: the programs in .eh_frame and .debug_frame that describe, for each
 * instruction of a function, where the registers of its caller are. Bytes in, one row out.
 * eh_frame.h finds the records; frame_expression.h evaluates expressions.
 *
 *   CIE     ... initial instructions up to its end
 *   FDE     start, size, [with 'z': uleb size, augmentation data], instructions up to its end
 *   instruction  u8: top two bits 1 advance, 2 offset, 3 restore, with a number in the low six;
 *                top two bits 0: opcode in the low six, with operands
 *
 * DWARF 5, sections 6.4.1 to 6.4.3 and 7.24; Linux Standard Base, Core 5.0, chapter 10.6.
 */
#ifndef LIBSYM_FORMAT_ELF_CALL_FRAME_H
#define LIBSYM_FORMAT_ELF_CALL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"
#include "libsym/format/elf/frame_row.h"

/* One of the two sections. */
struct call_frame_section {
	struct reader records; /* the bytes of the section; cursor at 0 */
	uint64_t vaddr;        /* of its first byte; 0 for .debug_frame */
	enum frame_machine machine;
	/* a CIE has an id of all ones, and an FDE's CIE pointer is an offset into the section */
	bool is_debug_frame;
};

/* One FDE and its CIE. Offsets count from the section. */
struct call_frame_function {
	uint64_t start_vaddr, end_vaddr;
	uint32_t initial_offset, initial_end; /* instructions of the CIE */
	uint32_t program_offset, program_end; /* instructions of the FDE */
	uint32_t code_alignment;
	int32_t data_alignment;
	int encoding; /* of addresses */
	uint8_t return_register;
	bool is_signal_frame;
};

/* Reads the FDE at `offset`. Returns false for a CIE, the end, and a malformed record. */
bool call_frame_read(const struct call_frame_section *section, size_t offset,
		     struct call_frame_function *ret);

/* Offset of the record after the one at `offset`. Returns false at the end of the section. */
bool call_frame_next(const struct call_frame_section *section, size_t offset, size_t *ret);

/* The row for the instruction at `vaddr`, which lies in the function. Returns false if the program
 * is malformed or uses an instruction that no compiler emits. */
bool call_frame_row_at(const struct call_frame_section *section,
		       const struct call_frame_function *function, uint64_t vaddr,
		       struct frame_row *ret);

#endif
