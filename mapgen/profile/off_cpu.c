/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/off_cpu.h"

#include <stdlib.h>

#include "libsym/error.h"

enum {
	FIRST_THREADS = 256,
};

void off_cpu_deinit(struct off_cpu *off_cpu)
{
	free(off_cpu->threads);
	*off_cpu = (struct off_cpu){ 0 };
}

static struct away_thread *find(struct off_cpu *off_cpu, uint32_t thread)
{
	size_t count = off_cpu->count ? off_cpu->count : FIRST_THREADS;
	struct away_thread *threads;

	if (thread < off_cpu->count)
		return &off_cpu->threads[thread];
	while (count <= thread)
		count *= 2;
	threads = reallocarray(off_cpu->threads, count, sizeof(*threads));
	if (!threads)
		return NULL;
	for (size_t i = off_cpu->count; i < count; i++)
		threads[i] = (struct away_thread){ .stack = UINT32_MAX };
	off_cpu->threads = threads;
	off_cpu->count = count;
	return &threads[thread];
}

struct sym_error *off_cpu_sample(struct off_cpu *off_cpu, uint32_t thread, uint32_t stack)
{
	struct away_thread *found = find(off_cpu, thread);

	if (!found)
		return &sym_error_no_memory;
	found->stack = stack;
	return NULL;
}

struct sym_error *off_cpu_out(struct off_cpu *off_cpu, uint32_t thread, uint64_t time_ns,
			      bool is_preempted)
{
	struct away_thread *found = find(off_cpu, thread);

	if (!found)
		return &sym_error_no_memory;
	if (found->has_ended)
		return NULL;
	/* An IN was lost between the two: the first wait may be long over. */
	off_cpu->lost_returns += found->out_ns != 0;
	found->out_ns = time_ns;
	found->is_preempted = is_preempted;
	found->is_seen = true;
	return NULL;
}

struct sym_error *off_cpu_note_running(struct off_cpu *off_cpu, uint32_t thread)
{
	struct away_thread *found = find(off_cpu, thread);

	if (!found)
		return &sym_error_no_memory;
	found->is_seen = true;
	if (!found->out_ns)
		return NULL;
	off_cpu->lost_returns++;
	found->out_ns = 0;
	found->stack = UINT32_MAX;
	return NULL;
}

struct sym_error *off_cpu_note_life(struct off_cpu *off_cpu, uint32_t thread, bool has_ended)
{
	struct away_thread *found = find(off_cpu, thread);

	if (!found)
		return &sym_error_no_memory;
	*found = (struct away_thread){ .stack = UINT32_MAX,
				       .is_seen = true,
				       .has_ended = has_ended };
	return NULL;
}

struct sym_error *off_cpu_in(struct off_cpu *off_cpu, uint32_t thread, uint64_t time_ns,
			     uint64_t begin_ns, struct away_time *ret, bool *away_ret)
{
	struct away_thread *found = find(off_cpu, thread);

	if (!found)
		return &sym_error_no_memory;
	*ret = (struct away_time){ .begin_ns = found->out_ns,
				   .end_ns = time_ns,
				   .stack = found->stack,
				   .is_preempted = found->is_preempted };
	*away_ret = found->out_ns;
	if (!found->is_seen) {
		ret->begin_ns = begin_ns;
		ret->is_early = *away_ret = true;
	}
	*found = (struct away_thread){ .stack = UINT32_MAX, .is_seen = true };
	return NULL;
}

bool off_cpu_end(const struct off_cpu *off_cpu, uint32_t thread, uint64_t time_ns,
		 struct away_time *ret)
{
	const struct away_thread *found;

	if (thread >= off_cpu->count || !off_cpu->threads[thread].out_ns)
		return false;
	found = &off_cpu->threads[thread];
	*ret = (struct away_time){ .begin_ns = found->out_ns,
				   .end_ns = time_ns,
				   .stack = found->stack,
				   .is_preempted = found->is_preempted };
	return true;
}
