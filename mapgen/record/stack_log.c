/* SPDX-License-Identifier: MIT */
#include "mapgen/record/stack_log.h"

#include <inttypes.h>

void stack_log_note(struct buf *log, struct recorder_counts *counts,
		    const struct perf_sample *sample, const struct recorded_stack *stack)
{
	size_t guessed = 0;

	for (size_t i = 0; i < stack->count; i++)
		guessed += !!(stack->frames[i].flags & SYM_FRAME_IS_GUESSED);
	counts->guessed_frames += guessed;
	counts->cut_stacks[stack->end]++;
	if (stack->end == SYM_UNWIND_WHOLE)
		counts->whole_stacks++;
	if (stack->end == SYM_UNWIND_WHOLE && !guessed)
		return;
	buf_printf(log, "%" PRIu64 "\t%u\t%d\t%" PRIx64, sample->time_ns, sample->tid,
		   (int)stack->end, stack->frames[stack->count - 1].address);
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].flags & SYM_FRAME_IS_GUESSED)
			buf_printf(log, "\t%zu", i);
	buf_append(log, "\n", 1);
}
