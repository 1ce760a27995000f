/* SPDX-License-Identifier: MIT */
/*
 * The BPF programs that run at each hit of a probe. Both count hits beyond a budget; then one
 * writes a sample of its own, the other lets the event of the kernel write one.
 */
#ifndef MAPGEN_RECORD_BPF_PROGRAMS_H
#define MAPGEN_RECORD_BPF_PROGRAMS_H

#include <stddef.h>
#include <stdint.h>

enum {
	BPF_SLOTS = 64, /* a sample is made in the slot of its thread; a power of two */
};

/* The only value of the map of counters. */
struct bpf_counters {
	uint64_t window, count; /* event_budget.h */
	uint64_t thinned;       /* events beyond the budget */
	uint64_t without_slot;  /* another thread was writing at the same place */
};

/*
 * The raw part of a sample is all but `is_busy`. The registers of the mask follow, by ascending
 * number, then the bytes of the stack. After the size of the raw part, which has four bytes, all
 * of these are aligned.
 */
struct bpf_slot {
	uint32_t is_busy; /* with the sample of another thread */
	uint32_t number;  /* of the probe */
	uint64_t stack_bytes;
};

/* The registers and the bytes of the stack that a sample has. */
struct bpf_sample_plan {
	uint64_t registers; /* perf's numbers */
	uint32_t stack_bytes;
};

/* Where the stack begins in a slot. */
size_t bpf_stack_offset(const struct bpf_sample_plan *plan);
size_t bpf_slot_bytes(const struct bpf_sample_plan *plan);

/*
 * Both return a descriptor, or -1 with errno set. `counters_fd`: an array of one struct
 * bpf_counters; `slots_fd`: an array of BPF_SLOTS; `outputs_fd`: events by processor.
 */
int bpf_program_load_sampling(const struct bpf_sample_plan *plan, uint32_t most_in_window,
			      int counters_fd, int slots_fd, int outputs_fd);
int bpf_program_load_thinning(uint32_t most_in_window, int counters_fd);

#endif
