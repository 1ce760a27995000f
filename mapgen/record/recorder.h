/* SPDX-License-Identifier: MIT */
/*
 * A recording under way: reads the rings of its events, unwinds and names each sample, and hands
 * everything to the writer of perf.data. Follows processes as they fork, exec and end.
 */
#ifndef MAPGEN_RECORD_RECORDER_H
#define MAPGEN_RECORD_RECORDER_H

#include "mapgen/record/event_probes.h"
#include "mapgen/record/event_set.h"
#include "mapgen/record/name_table.h"
#include "mapgen/record/perf_writer.h"

/* Counts of what was seen and what was lost. */
struct recorder_counts {
	uint64_t cpu_samples, switch_samples;
	uint64_t probe_samples, lost_probe_samples; /* native stacks of a runtime's events */
	uint64_t thinned_stacks, thinned_in_kernel; /* left out, as there were too many */
	uint64_t unprobed_events;                   /* without a stack for none of these reasons */
	uint64_t whole_stacks, cut_stacks[SYM_UNWIND_FULL + 1], guessed_frames;
	uint64_t kernel_only; /* samples of threads without a user part */
	uint64_t
		unknown_processes; /* samples of processes that had ended before they were opened */
	uint64_t short_waits;      /* context switches whose wait was too short to have a stack */
	uint64_t lost_switches;    /* context switches without a sample; their times are known */
	uint64_t lost_records;     /* of all else */
	uint64_t throttled;
};

struct recorder;

/* `budget` may be NULL: what looking at the processes may cost. */
struct sym_error *recorder_create(const struct event_plan *plan, struct sym_budget *budget,
				  FILE *perf_data, bool keeps_stacks, struct recorder **ret)
	__attribute__((warn_unused_result));
void recorder_destroy(struct recorder *recorder);

/* Keeps only about this much before the end. Call it first. Errors: IO. */
struct sym_error *recorder_keep_last(struct recorder *recorder, uint64_t span_ns)
	__attribute__((warn_unused_result));

/* Begins to record a process that is there. */
struct sym_error *recorder_add_process(struct recorder *recorder, int32_t pid, bool starts_on_exec)
	__attribute__((warn_unused_result));

/* Records everything on this machine. */
struct sym_error *recorder_add_system(struct recorder *recorder)
	__attribute__((warn_unused_result));

/*
 * Takes the native stack of each event that the runtime of the process fires, at offsets into its
 * file; see event_probes_add(). The plan has_probes.
 */
struct sym_error *recorder_add_probes(struct recorder *recorder, int32_t pid, const char *path,
				      const char *const *names, const uint64_t *offsets,
				      size_t count) __attribute__((warn_unused_result));

/* Gives names of this time to the addresses of a managed stack: innermost first, not aligned. */
struct sym_error *recorder_name_stack(struct recorder *recorder, int32_t pid,
				      const uint8_t *addresses, size_t count, uint64_t time_ns)
	__attribute__((warn_unused_result));

/* Probes are events of the uprobe PMU, and threads that appear need more of them. */
bool recorder_has_raw_uprobes(const struct recorder *recorder);

/* An event of a runtime has come, and the place that fires it has a probe. */
void recorder_note_probed_event(struct recorder *recorder);

/* Waits for records, at most `timeout_ms`, and takes all that there are. *ended_ret: all processes
 * that were added have ended. */
struct sym_error *recorder_step(struct recorder *recorder, int timeout_ms, bool *ended_ret)
	__attribute__((warn_unused_result));

/*
 * Ends perf.data for now: it is whole, with what was taken so far. recorder_go_on() empties it, and
 * begins it again with the threads that there are; the tables of names stay.
 */
struct sym_error *recorder_pause(struct recorder *recorder, const char *command_line)
	__attribute__((warn_unused_result));
struct sym_error *recorder_go_on(struct recorder *recorder) __attribute__((warn_unused_result));

/* Takes what is left and ends perf.data. `from_ns`: with recorder_keep_last(), what is older is
 * left out. */
struct sym_error *recorder_finish(struct recorder *recorder, const char *command_line,
				  uint64_t from_ns) __attribute__((warn_unused_result));

const struct recorder_counts *recorder_counts(const struct recorder *recorder);
const struct name_table *recorder_names(const struct recorder *recorder);
/* Lines of cut and guessed stacks; see recording_format.h. */
const struct buf *recorder_stacks(const struct recorder *recorder);
/* The facts of a process from when it was opened; NULL if it was not opened. */
const struct sym_process_info *recorder_process_info(struct recorder *recorder, int32_t pid);
/* Switch samples are not permitted: off-CPU times have no stacks. */
bool recorder_has_no_switch_samples(const struct recorder *recorder);

#endif
