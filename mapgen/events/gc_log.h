/* SPDX-License-Identifier: MIT */
/*
 * Collections of processes, one after the other, from events in the order of time.
 *
 *   GCTriggered -> SuspendEEBegin -> SuspendEEEnd -> GCStart -> GCEnd -> GCHeapStats ->
 * RestartEEEnd
 *
 * A pause is from SuspendEEBegin to RestartEEEnd of one thread, where the reason of the suspension
 * is a collection. A background collection has two or more, and collections of the youngest
 * generations may run while it does. One that runs when a background collection begins, in the same
 * suspension, has that pause from its own GCStart on.
 */
#ifndef MAPGEN_EVENTS_GC_LOG_H
#define MAPGEN_EVENTS_GC_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "mapgen/events/runtime_event.h"

enum gc_kind {
	GC_BLOCKING = 0,
	GC_BACKGROUND = 1,
	GC_FOREGROUND = 2, /* blocking, while a background collection runs */
};

struct gc_collection {
	uint32_t number, generation, reason, kind;
	uint64_t start_ns; /* of its first pause; of GCStart, where no pause was seen */
	uint64_t pause_ns, longest_pause_ns;
	uint32_t pauses;
	uint64_t before_bytes, after_bytes, promoted_bytes;
	bool has_before, has_after; /* the histories of its heaps, its HeapStats were seen */
	int32_t pid;                /* the argument of gc_log_begin() */
	int32_t tid;                /* the thread that started it */
	uint32_t stack;             /* of what started it, as the caller counts; UINT32_MAX: none */
};

struct gc_log {
	struct gc_collection *items; /* by start, of one process after the other */
	size_t count, capacity;
	size_t first; /* of the process */
	int32_t pid;
	uint64_t stray_pauses, stray_pause_ns; /* of collections that began before the recording */
	/* Under way; collections by their number in `items` + 1, 0: none. */
	bool is_suspended;
	int32_t suspend_tid;
	uint64_t suspend_ns, suspended_ns; /* begin and end of the suspension; 0: not seen */
	size_t blocking;                   /* began in this suspension */
	uint64_t blocking_pause_ns;        /* begin of its pause */
	size_t background;
	bool is_background_new;     /* it began in this suspension */
	size_t finished_background; /* the histories of its heaps come after its HeapStats */
	int32_t trigger_tid;        /* 0: none */
	uint32_t trigger_stack;
};

void gc_log_deinit(struct gc_log *log);

/* The next events are of this process. */
void gc_log_begin(struct gc_log *log, int32_t pid);

/* Takes an event; one that has nothing to do with collections is left out. `stack`: the caller's
 * number of its stack, or UINT32_MAX. Errors: NO_MEMORY. */
struct sym_error *gc_log_take(struct gc_log *log, const struct runtime_event *event, uint32_t stack)
	__attribute__((warn_unused_result));

/* "small object", "induced", ...; static. */
const char *gc_reason_text(uint32_t reason);
/* "blocking", "background", "foreground"; static. */
const char *gc_kind_text(uint32_t kind);

#endif
