/* SPDX-License-Identifier: MIT */
/*
 * The raw bytes of a sample of the tracepoint sched:sched_switch, of kernels with 64 bits:
 *
 *   0  u16 type, u8 flags, u8 preemption count     32  s64 state of the thread that leaves
 *   4  s32 thread that is interrupted              40  char name of the one that comes [16]
 *   8  char name of the thread that leaves [16]    56  s32 thread that comes
 *  24  s32 thread that leaves, s32 priority        60  s32 its priority
 *
 * /sys/kernel/tracing/events/sched/sched_switch/format. Kernels with other fields exist, so the
 * thread that leaves is compared with that of the sample. In another PID namespace they differ too.
 */
#ifndef MAPGEN_PERFDATA_SCHED_SWITCH_H
#define MAPGEN_PERFDATA_SCHED_SWITCH_H

#include <stdbool.h>
#include <stdint.h>

#include "mapgen/perfdata/perf_events.h"
#include "mapgen/perfdata/perf_sample.h"

/* The thread of a sample that leaves for good (perf_event_pid_type() of kernel/events/core.c). */
#define SCHED_SWITCH_ENDED UINT32_MAX

struct sched_switch {
	int32_t next_tid;
	bool is_preempted; /* the thread that leaves could have run */
};

/*
 * Is it that tracepoint, with a sample of every switch? False with fewer ids than processors: what
 * threads did on the others is not there (perf record -C).
 */
bool sched_switch_is_event(const struct perf_events *events, const struct recorded_event *event);

/* False: the fields are others. */
bool sched_switch_read(const struct perf_sample *sample, struct sched_switch *ret);

#endif
