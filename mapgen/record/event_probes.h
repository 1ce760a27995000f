/* SPDX-License-Identifier: MIT */
/*
 * Uprobes where runtimes fire their events, for the native stack of each event.
 *
 * The kernel writes a breakpoint into the code of the recorded process only, and only at entry of
 * an instruction: never a return probe. Ways to place one, in this order:
 *
 *   a BPF link         all threads of a process, also later ones (bpf_probe.h)
 *   a tracefs event    opened for each thread and processor, inherited by later threads
 *   events of threads  without inheritance, opened as threads appear: the kernel would read the
 *                      path again in the target's clone(), which fails then
 */
#ifndef MAPGEN_RECORD_EVENT_PROBES_H
#define MAPGEN_RECORD_EVENT_PROBES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapgen/perfdata/perf_sample.h"
#include "mapgen/record/bpf_probe.h"
#include "mapgen/record/event_budget.h"
#include "mapgen/record/event_set.h"

enum {
	MOST_PROBES = 16, /* different names */
};

enum probe_way {
	PROBE_NOT_OPEN,
	PROBE_BY_BPF,
	PROBE_BY_TRACEFS,
	PROBE_BY_THREAD,
};

struct probed_process;

struct event_probes {
	struct event_set *events;       /* borrowed: rings, and what the kernel has opened */
	const char *names[MOST_PROBES]; /* of tracepoints; borrowed */
	size_t name_count;
	enum probe_way way;
	struct bpf_probe bpf;
	uint32_t uprobe_type; /* of the PMU */
	struct probed_process *processes;
	size_t process_count, process_capacity;
	uint32_t samples_per_second;
	struct event_budget budget; /* of the ways without BPF */
};

void event_probes_init(struct event_probes *probes, struct event_set *events,
		       uint32_t samples_per_second);
void event_probes_deinit(struct event_probes *probes);

/*
 * Places probes in a process, at offsets into the file at `path` (UINT64_MAX: no such place).
 * Errors: PERMISSION, UNSUPPORTED, IO: then there are none in this process.
 */
struct sym_error *event_probes_add(struct event_probes *probes, int32_t pid, const char *path,
				   const char *const *names, const uint64_t *offsets, size_t count)
	__attribute__((warn_unused_result));

/* The thread was made: probes of the way PROBE_BY_THREAD follow it. */
struct sym_error *event_probes_note_thread(struct event_probes *probes, int32_t pid, int32_t tid)
	__attribute__((warn_unused_result));

/* False: the sample is beyond the budget, and is counted as left out. With BPF the kernel has done
 * that. */
bool event_probes_may_take(struct event_probes *probes, uint64_t time_ns);

/* Reads a sample of a probe, as this way lays it out. False when it is damaged. */
bool event_probes_read(const struct event_probes *probes, const struct perf_event_header *record,
		       struct perf_sample *ret);

/* Number of the probe of a sample; MOST_PROBES: unknown. */
uint32_t event_probes_number(const struct event_probes *probes, const struct perf_sample *sample);

/* Removes all probes; their counts stay. */
void event_probes_stop(struct event_probes *probes);

/* Stacks that the kernel and the reader have left out, and those that were lost. */
struct event_probe_counts {
	uint64_t thinned, thinned_in_kernel, lost;
};

struct event_probe_counts event_probes_counts(const struct event_probes *probes);

#endif
