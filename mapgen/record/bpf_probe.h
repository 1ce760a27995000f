/* SPDX-License-Identifier: MIT */
/*
 * Uprobes of one process by a BPF link of the kind uprobe_multi (Linux 6.6): all threads, also
 * those that are made later, and no other process.
 *
 * A small program runs at each hit. It lets the kernel write a sample, as plain events have them,
 * with the number of the probe in its raw part. Beyond a number of samples a second it counts
 * instead.
 */
#ifndef MAPGEN_RECORD_BPF_PROBE_H
#define MAPGEN_RECORD_BPF_PROBE_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

struct bpf_probe {
	int counters_fd; /* maps and program; -1: not open */
	int outputs_fd;
	int program_fd;
};

#define BPF_PROBE_CLOSED ((struct bpf_probe){ -1, -1, -1 })

/* Counts of events that were not written. */
struct bpf_probe_counts {
	uint64_t thinned; /* beyond the budget */
	uint64_t lost;    /* the ring was full */
};

/*
 * Loads the program. `cpus` are numbers of processors, `most_cpu` is above all of them; `fds` are
 * their events of PERF_COUNT_SW_BPF_OUTPUT. Errors: PERMISSION, UNSUPPORTED (an older kernel), IO.
 */
struct sym_error *bpf_probe_open(struct bpf_probe *probe, const int *cpus, const int *fds,
				 size_t count, uint32_t most_cpu, uint32_t samples_per_second)
	__attribute__((warn_unused_result));
void bpf_probe_close(struct bpf_probe *probe);

/* Places probes at offsets into a file; `numbers` come with their samples. They are gone when
 * *link_fd_ret is closed. */
struct sym_error *bpf_probe_attach(const struct bpf_probe *probe, int32_t pid, const char *path,
				   const uint64_t *offsets, const uint64_t *numbers, size_t count,
				   int *link_fd_ret) __attribute__((warn_unused_result));

struct bpf_probe_counts bpf_probe_counts(const struct bpf_probe *probe);

#endif
