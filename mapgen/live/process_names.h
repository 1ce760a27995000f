/* SPDX-License-Identifier: MIT */
/*
 * Names for addresses of many processes, as texts and recordings contain them: by process or by
 * thread, as addresses or as offsets into mapped files. Opens a process when an address of it
 * comes, refreshes it when it may have new code, and uses the perf map that it left when it has
 * ended.
 */
#ifndef MAPGEN_LIVE_PROCESS_NAMES_H
#define MAPGEN_LIVE_PROCESS_NAMES_H

#include "mapgen/cli/options.h"
#include "mapgen/stacktext/stack_filter.h"

struct process_names;

/*
 * With a PID in the options only that process is looked at. Addresses without a process, and those
 * of threads that have ended, belong to it. It is opened at once, with a message when that fails.
 * NULL: out of memory.
 */
struct process_names *process_names_create(const struct options *options);
void process_names_destroy(struct process_names *names);

/* Whether the text that follows was written before any process was looked at, like that of a file.
 * Then processes are refreshed only when a name is missing. False at first. */
void process_names_set_written(struct process_names *names, bool is_written);

/* As stack_filter_client.resolve; `context` is the process_names. */
bool process_names_resolve(void *context, struct stack_owner owner,
			   const struct stack_query *queries, size_t count,
			   struct stack_name *answers);

/*
 * Announces addresses of this owner: processes that are first seen between two calls of
 * process_names_resolve() are asked together.
 */
void process_names_expect(struct process_names *names, struct stack_owner owner);

/*
 * Call this while no text comes: it receives what runtimes report about new methods, so that these
 * have names after the processes have ended. process_names_rest_ms() says when; -1 while no runtime
 * is followed.
 */
void process_names_idle(struct process_names *names);
int process_names_rest_ms(const struct process_names *names);

/* The counts of all frames so far. */
struct process_names_counts {
	uint64_t asked;
	uint64_t named;
	uint64_t bounded;    /* named by the bounds of a stripped function: IMAGE!0xVADDR */
	uint64_t ownerless;  /* the text names no process, and no PID was given */
	uint64_t foreign;    /* of another process than that of the options */
	uint64_t gone;       /* of a process or thread that has ended without a perf map */
	uint64_t threads;    /* of `gone`: of threads whose process is unknown */
	uint64_t unmapped;   /* no mapping covers them */
	uint64_t nameless;   /* in code without symbols */
	uint64_t unreadable; /* of `nameless`: in files that could not be read */
	uint64_t lined;      /* frames that got a source line, with or without a name before */
	uint64_t lineless;   /* managed frames without one */
	uint64_t early;      /* named by a jitdump, at a time before the process began */
};

struct process_names_counts process_names_counts(const struct process_names *names);

/* Why the first of the lineless frames has no line; NULL: there is none. */
const char *process_names_line_reason(const struct process_names *names);

/* True when a process could not be looked at, which a message has said. */
bool process_names_failed(const struct process_names *names);

#endif
