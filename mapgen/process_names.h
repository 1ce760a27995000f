/* SPDX-License-Identifier: MIT */
/*
 * Names for addresses of many processes, as texts and recordings speak of them:
 * by process or by thread, as addresses or as offsets into mapped files. Opens
 * a process when it is first asked of, looks at it again when it has code that
 * was not there before, and makes do with the perf map it left when it is gone.
 */
#ifndef MAPGEN_PROCESS_NAMES_H
#define MAPGEN_PROCESS_NAMES_H

#include "mapgen/options.h"
#include "mapgen/profile/stack_filter.h"

struct process_names;

/*
 * With a PID in the options only that process is looked at: it is meant where
 * the text says nothing, or names a thread that has ended. Opened at once; one
 * that cannot be is said. NULL: out of memory.
 */
struct process_names *process_names_create(const struct options *options);
void process_names_destroy(struct process_names *names);

/* Whether the text that comes from now on was written before anybody was asked, as that of a file:
 * then what processes do meanwhile is not taken up. False at first. */
void process_names_set_written(struct process_names *names, bool is_written);

/* As stack_filter_client.resolve; `context` is the process_names. */
bool process_names_resolve(void *context, struct stack_owner owner,
			   const struct stack_query *queries, size_t count,
			   struct stack_name *answers);

/*
 * While no text comes: takes up what the runtimes of the processes asked of compile meanwhile, so
 * that it has names after they have ended. To be called after process_names_rest_ms(): -1 while
 * there is none to be followed.
 */
void process_names_idle(struct process_names *names);
int process_names_rest_ms(const struct process_names *names);

/* What became of the frames so far. */
struct process_names_counts {
	uint64_t asked;
	uint64_t named;
	uint64_t bounded;   /* told by the bounds of a stripped function: IMAGE!0xVADDR */
	uint64_t ownerless; /* the text does not say whose, and no PID was given */
	uint64_t foreign;   /* of another process than the one asked for */
	uint64_t gone;      /* of a process or thread that is not there, and has left nothing */
	uint64_t threads;   /* of those, of threads whose process is not known */
	uint64_t unmapped;  /* no mapping covers them */
	uint64_t nameless;  /* in code without symbols there */
	uint64_t early;     /* named by a jitdump, at a time when the process was not there */
};

struct process_names_counts process_names_counts(const struct process_names *names);

/* True when a process could not be looked at, which has been said. */
bool process_names_failed(const struct process_names *names);

#endif
