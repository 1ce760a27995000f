/* SPDX-License-Identifier: MIT */
/*
 * How long threads are away from the processor. A thread is away from its SWITCH OUT to its SWITCH
 * IN; the sample that the kernel takes just before the first has the stack.
 */
#ifndef MAPGEN_PROFILE_OFF_CPU_H
#define MAPGEN_PROFILE_OFF_CPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

struct away_thread {
	uint64_t out_ns; /* 0: it is on a processor, or not seen yet */
	uint32_t stack;  /* raw number of the sample at the switch; UINT32_MAX: none */
	bool is_preempted;
	bool is_seen;
	bool has_ended;
};

struct off_cpu {
	struct away_thread *threads; /* by number of the profile */
	size_t count;
	uint64_t lost_returns; /* of threads that were seen to run, or to leave again */
};

struct away_time {
	uint64_t begin_ns, end_ns;
	uint32_t stack;
	bool is_preempted;
	bool is_early; /* it began before the recording */
};

void off_cpu_deinit(struct off_cpu *off_cpu);
/* The sample at a switch. */
struct sym_error *off_cpu_sample(struct off_cpu *off_cpu, uint32_t thread, uint32_t stack)
	__attribute__((warn_unused_result));
struct sym_error *off_cpu_out(struct off_cpu *off_cpu, uint32_t thread, uint64_t time_ns,
			      bool is_preempted) __attribute__((warn_unused_result));
/* A sample of a clock: the thread runs. If it was away, its return was lost. */
struct sym_error *off_cpu_note_running(struct off_cpu *off_cpu, uint32_t thread)
	__attribute__((warn_unused_result));
/* A thread was made, or ends: it waits for nothing then. */
struct sym_error *off_cpu_note_life(struct off_cpu *off_cpu, uint32_t thread, bool has_ended)
	__attribute__((warn_unused_result));
/* False in *away_ret: it was not away. `begin_ns`: when the recording began. */
struct sym_error *off_cpu_in(struct off_cpu *off_cpu, uint32_t thread, uint64_t time_ns,
			     uint64_t begin_ns, struct away_time *ret, bool *away_ret)
	__attribute__((warn_unused_result));
/* At the end of the recording. */
bool off_cpu_end(const struct off_cpu *off_cpu, uint32_t thread, uint64_t time_ns,
		 struct away_time *ret);

#endif
