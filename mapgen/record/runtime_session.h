/* SPDX-License-Identifier: MIT */
/*
 * The events of one runtime while it is recorded: starts a session, and probes for native stacks
 * where they are wanted and permitted; keeps the stream as it comes; says in the end what it was
 * and what was lost.
 */
#ifndef MAPGEN_RECORD_RUNTIME_SESSION_H
#define MAPGEN_RECORD_RUNTIME_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "libsym/libsym.h"
#include "mapgen/events/stop_condition.h"
#include "mapgen/record/recorder.h"

/* Where stacks of events come from. */
enum event_stacks {
	EVENT_STACKS_NATIVE = 1, /* probes; managed where they are not possible. The default */
	EVENT_STACKS_MANAGED,    /* the runtime walks them */
	EVENT_STACKS_NONE,
};

struct runtime_session;

struct runtime_session_opts {
	const char *events; /* as --events has it; event_choice.h */
	enum event_stacks stacks;
	struct stop_condition stop; /* STOP_NEVER: none */
	uint64_t ring_ns;           /* keep only about this much before the end; 0: all */
	struct recorder *recorder;  /* borrowed */
	struct sym_budget *budget;  /* borrowed; may be NULL */
};

/*
 * Starts the session of a process that is there.
 * Errors: NOT_FOUND (no .NET runtime, no socket), UNSUPPORTED, IO, PERMISSION.
 */
struct sym_error *runtime_session_open(int32_t pid, const struct runtime_session_opts *opts,
				       struct runtime_session **ret)
	__attribute__((warn_unused_result));
/* Ends the session, if it has not ended. */
void runtime_session_close(struct runtime_session *session);

int32_t runtime_session_pid(const struct runtime_session *session);

/* Gives names to the managed stacks that have arrived. */
struct sym_error *runtime_session_step(struct runtime_session *session)
	__attribute__((warn_unused_result));

/* When the condition to stop was true, on CLOCK_MONOTONIC; 0: not yet. */
uint64_t runtime_session_stopped_ns(const struct runtime_session *session);

/* Asks the runtime for what is left, and waits for it, as long as more comes. `from_ns`: with
 * opts.ring_ns, what is older is left out. */
struct sym_error *runtime_session_finish(struct runtime_session *session, uint64_t from_ns)
	__attribute__((warn_unused_result));

/* The bytes that the runtime has sent. The file belongs to the session. */
FILE *runtime_session_file(const struct runtime_session *session);

/* The entry of recording.json; see recording_file.h. */
json_t *runtime_session_describe(const struct runtime_session *session, const char *member);

/* "native", "managed", "none", and why not native (NULL: it is, or was not asked for). */
const char *runtime_session_stacks(const struct runtime_session *session, const char **reason_ret);

/* Managed stacks beyond the budget of event_budget.h. The runtime walks the stack of each event of
 * a session or of none, so they are there, and have cost their time. */
uint64_t runtime_session_stacks_beyond_budget(const struct runtime_session *session);

/* How often the runtime has dropped one event or more. */
uint64_t runtime_session_gaps(const struct runtime_session *session);

/* Why it ended before the recording; NULL: it did not. */
const char *runtime_session_end_reason(const struct runtime_session *session);

#endif
