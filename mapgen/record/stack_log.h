/* SPDX-License-Identifier: MIT */
/*
 * Facts that a report cannot see in the chain of a sample: that the stack ends early, and which
 * frames are guesses. A line each: "time tid end address", then the numbers of the frames
 * (recording_file.h).
 */
#ifndef MAPGEN_RECORD_STACK_LOG_H
#define MAPGEN_RECORD_STACK_LOG_H

#include "libsym/base/buf.h"
#include "mapgen/perfdata/perf_sample.h"
#include "mapgen/record/recorded_process.h"
#include "mapgen/record/recorder.h"

/* Counts the stack, and adds its line unless it is whole and has no guess. */
void stack_log_note(struct buf *log, struct recorder_counts *counts,
		    const struct perf_sample *sample, const struct recorded_stack *stack);

#endif
