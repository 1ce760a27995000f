/* SPDX-License-Identifier: MIT */
/*
 * The events of one recording: for each thread and each processor one sampling event, and with
 * off-CPU times one that fires at each context switch.
 *
 * Each kind of event has a ring buffer of its own on each processor. A context switch is 32 KiB of
 * stack, and there may be tens of thousands a second: where their ring overflows, CPU samples and
 * the records of switches, mappings and processes are not lost with them.
 *
 * Threads and processes that a watched thread makes inherit its events. Threads that were there
 * before are found in /proc; one that appears while they are being opened has either inherited
 * events, and then a FORK record says so, or is opened in the next round.
 * A thread may still get both: its maker had the events of some processors only, and no FORK
 * record was written. What its inherited events write then is left out.
 */
#ifndef MAPGEN_RECORD_EVENT_SET_H
#define MAPGEN_RECORD_EVENT_SET_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/hash.h"
#include "libsym/libsym.h"
#include "mapgen/record/event_ring.h"

/* The events to record. */
struct event_plan {
	unsigned int frequency_hz; /* 0: no CPU samples */
	bool has_off_cpu;
	uint32_t shortest_wait_us; /* of which a stack is kept; 0 or 1: all */
	bool has_kernel;           /* kernel frames */
	bool copies_stacks; /* registers and stack bytes instead of the kernel's frame pointers */
	bool has_probes;    /* event_probes.h adds them */
	uint32_t cpu_stack_bytes, switch_stack_bytes, probe_stack_bytes;
};

enum kernel_event {
	EVENT_CPU,    /* cpu-clock, by frequency; mappings, threads and processes */
	EVENT_SWITCH, /* context-switches, each */
	EVENT_PROBE,  /* a place in the code of a runtime, each time */
	EVENT_BIRTH,  /* a thread is made: its record wakes the reader at once */
	EVENT_KINDS,
};

/* One event of a thread on a processor. */
struct event_member {
	UT_hash_handle hh;
	uint64_t id;
	int fd;
	int32_t tid; /* that it was opened for; -1: all threads */
	enum kernel_event kind;
	uint32_t probe; /* number of the probe; of EVENT_PROBE */
};

/* A thread that has events. */
struct event_thread {
	UT_hash_handle hh;
	int32_t tid;
	bool is_opened; /* has its own, not only inherited ones */
};

struct event_set {
	struct event_plan plan;
	struct perf_event_attr attributes[EVENT_KINDS];
	bool is_open[EVENT_KINDS];
	bool has_no_switch_samples; /* asked for, and not permitted: only SWITCH records */
	int *cpus;
	size_t cpu_count;
	/* By kind, then by number of the processor in `cpus`. */
	struct event_set_ring {
		struct event_ring ring;
		int fd; /* of the event that it was mapped with */
	} * rings;
	size_t ring_count;
	size_t ring_pages[EVENT_KINDS]; /* asked for; less where memory may not be locked */
	struct event_member *members;   /* by id */
	struct event_thread *threads;   /* by tid */
};

struct sym_error *event_set_init(struct event_set *set, const struct event_plan *plan)
	__attribute__((warn_unused_result));
void event_set_deinit(struct event_set *set);

/*
 * Opens the events of all threads of a process that have none yet. `starts_on_exec`: they begin
 * to count with its next exec(). PERMISSION says which setting or capability would permit it.
 */
struct sym_error *event_set_add_process(struct event_set *set, int32_t pid, bool starts_on_exec)
	__attribute__((warn_unused_result));

/* Opens one more event of a probe, on the processor set->cpus[number]. `tid`: -1 for all threads.
 * NOT_FOUND: the thread has ended. */
struct sym_error *event_set_add_probe(struct event_set *set, const struct perf_event_attr *attr,
				      int32_t tid, size_t number, uint32_t probe, int *fd_ret)
	__attribute__((warn_unused_result));

/* Wakes the reader when the thread, or one that it has made since, makes another one. */
struct sym_error *event_set_follow_births(struct event_set *set, int32_t tid)
	__attribute__((warn_unused_result));

/* May events have frames of the kernel? */
bool event_set_may_see_kernel(void);

/* Opens the events of everything on all processors. */
struct sym_error *event_set_add_system(struct event_set *set) __attribute__((warn_unused_result));

/* A thread has inherited its events: a FORK record said so. */
struct sym_error *event_set_note_thread(struct event_set *set, int32_t tid)
	__attribute__((warn_unused_result));

/* The thread has ended; another one may get its number. */
void event_set_note_exit(struct event_set *set, int32_t tid);

/* Is it a sample or a switch that an inherited event wrote, of a thread with its own events? */
bool event_set_is_twice(const struct event_set *set, const struct perf_event_header *record);

/* Returns the kind of the event that wrote the record; EVENT_CPU if it is unknown. */
enum kernel_event event_set_kind_of(const struct event_set *set,
				    const struct perf_event_header *record);
/* NULL if it is unknown. */
const struct event_member *event_set_find(const struct event_set *set, uint64_t id);

/* Samples of probes that found their ring full. 0: none, or a kernel before Linux 6.0, which tells
 * it by LOST records alone, and only when a later sample finds room. */
uint64_t event_set_lost_probe_samples(const struct event_set *set);

/* No event counts any more. */
void event_set_disable(const struct event_set *set);

/* Waits until a ring has a part of its room filled, at most so long. */
void event_set_wait(const struct event_set *set, int timeout_ms);

#endif
