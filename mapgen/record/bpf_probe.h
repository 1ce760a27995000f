/* SPDX-License-Identifier: MIT */
/*
 * Uprobes of one process by a BPF link of the kind uprobe_multi (Linux 6.6): all threads, also
 * those that are made later, and no other process.
 *
 * A small program (bpf_programs.h) runs at each hit. It writes a sample whose raw part has the
 * number of the probe, registers and stack. Beyond a number of samples a second it counts instead.
 * The program that only counts can be put before any event of a uprobe.
 */
#ifndef MAPGEN_RECORD_BPF_PROBE_H
#define MAPGEN_RECORD_BPF_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"
#include "mapgen/perfdata/perf_sample.h"
#include "mapgen/record/bpf_programs.h"

struct bpf_probe {
	int counters_fd; /* maps and program; -1: not open */
	int outputs_fd;
	int slots_fd;
	int program_fd;
};

#define BPF_PROBE_CLOSED ((struct bpf_probe){ -1, -1, -1, -1 })

/* Events of PERF_COUNT_SW_BPF_OUTPUT, and the processor of each; all are below `most_cpu`. */
struct bpf_outputs {
	const int *cpus, *fds;
	size_t count;
	uint32_t most_cpu;
};

/* Loads the program that writes samples. Errors: PERMISSION, UNSUPPORTED (an older kernel), IO. */
struct sym_error *bpf_probe_open(struct bpf_probe *probe, const struct bpf_outputs *outputs,
				 const struct bpf_sample_plan *plan, uint32_t samples_per_second)
	__attribute__((warn_unused_result));
/* Loads the program that only counts. */
struct sym_error *bpf_probe_open_thinning(struct bpf_probe *probe, uint32_t samples_per_second)
	__attribute__((warn_unused_result));
void bpf_probe_close(struct bpf_probe *probe);

/* Puts the program that only counts before an event of a uprobe. False: this kernel cannot. */
bool bpf_probe_thin(const struct bpf_probe *probe, int event_fd);

/* Places probes at offsets into a file; `numbers` come with their samples. They are gone when
 * *link_fd_ret is closed. */
struct sym_error *bpf_probe_attach(const struct bpf_probe *probe, int32_t pid, const char *path,
				   const uint64_t *offsets, const uint64_t *numbers, size_t count,
				   int *link_fd_ret) __attribute__((warn_unused_result));

/* Registers and stack from the raw part of a sample. False: it is too short. */
bool bpf_probe_read(const struct bpf_sample_plan *plan, struct perf_sample *sample);

/* Zeros when it is not open. */
struct bpf_counters bpf_probe_counts(const struct bpf_probe *probe);

#endif
