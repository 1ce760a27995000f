/* SPDX-License-Identifier: MIT */
/*
 * One step from a frame to its caller: applies a row (frame_row.h) to registers.
 * Other files find the row.
 */
#ifndef LIBSYM_UNWIND_FRAME_STEP_H
#define LIBSYM_UNWIND_FRAME_STEP_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/reader.h"
#include "libsym/format/elf/frame_row.h"

struct frame_registers {
	uint64_t values[FRAME_REGISTERS]; /* by DWARF number */
	uint64_t known;                   /* bit n: values[n] is the frame's */
};

/* Memory of the process, at the moment of the registers. */
struct frame_memory {
	void *context;
	bool (*read)(void *context, uint64_t address, unsigned int size_bytes, uint64_t *ret);
};

enum frame_step_outcome {
	FRAME_STEP_DONE,
	FRAME_STEP_OUTERMOST,   /* the row has no caller */
	FRAME_STEP_NO_REGISTER, /* a register that the row needs is unknown */
	FRAME_STEP_NO_MEMORY,   /* memory that the row needs cannot be read */
	FRAME_STEP_BAD_RULE,    /* an expression is invalid */
};

/*
 * Replaces the registers of a frame by those of its caller.
 * `expressions`: the section with the row's expressions.
 * `registers` is unchanged unless the result is DONE.
 */
enum frame_step_outcome frame_step(const struct frame_row *row, enum frame_machine machine,
				   const struct reader *expressions,
				   const struct frame_memory *memory,
				   struct frame_registers *registers);

#endif
