/* SPDX-License-Identifier: MIT */
/* Data shared by stack_counts.bpf.c and stack_profiler.c. */
#ifndef LIBSYM_EXAMPLES_BPF_STACK_COUNTS_H
#define LIBSYM_EXAMPLES_BPF_STACK_COUNTS_H

#include <linux/types.h>

enum {
	STACK_DEPTH = 127, /* kernel.perf_event_max_stack */
	STACKS = 1 << 15,  /* different stacks */
};

/* One line of the output. */
struct stack_key {
	__u32 pid;
	__s32 user_stack; /* negative: there is none */
	__s32 kernel_stack;
	char comm[16];
};

/* Stacks that could not be stored or walked: an index of the map `lost`. */
enum stack_loss {
	LOST_TABLE_FULL = 0, /* STACKS is too small, or two stacks have the same hash */
	LOST_UNWALKED = 1,   /* the thread has no user stack, or its pages are not resident */
	LOSSES
};

#endif
