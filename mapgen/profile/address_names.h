/* SPDX-License-Identifier: MIT */
/*
 * The names of the addresses of a profile: the names that a recording has frozen, or for a plain
 * perf.data what is mapped in the processes and lies on disk.
 */
#ifndef MAPGEN_PROFILE_ADDRESS_NAMES_H
#define MAPGEN_PROFILE_ADDRESS_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/libsym.h"

struct frame_table;

struct unwound_stack {
	const struct sym_frame *frames; /* innermost first; until the next call */
	size_t count;
	enum sym_unwind_end end;
};

struct address_names {
	void *context;
	/*
	 * The frame of an address of a process at a time; pid -1: of the kernel. *ret: FRAME_NONE
	 * when nothing is known of it.
	 */
	struct sym_error *(*frame)(void *context, struct frame_table *frames, int32_t pid,
				   uint64_t time_ns, uint64_t address, uint32_t *ret);
	/* Between two times with the same number all answers for a process are the same. */
	uint32_t (*epoch)(void *context, int32_t pid, uint64_t time_ns);
	/* Unwinds a copy of the stack; NULL: cannot. */
	struct sym_error *(*unwind)(void *context, int32_t pid, uint64_t time_ns,
				    const struct sym_unwind_registers *registers,
				    const struct sym_unwind_stack *stack,
				    struct unwound_stack *ret);
};

#endif
