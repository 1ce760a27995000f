/* SPDX-License-Identifier: MIT */
/*
 * The jitted code of a process, reported by its runtime over the diagnostics socket: all code once,
 * and for repeated readers the changes since.
 * It knows in which order to send requests so that nothing is missing, and when to request
 * everything again.
 */
#ifndef LIBSYM_CLR_JITTED_BY_RUNDOWN_H
#define LIBSYM_CLR_JITTED_BY_RUNDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/clr/clr_target.h"
#include "libsym/clr/runtime_source.h"
#include "libsym/error.h"
#include "libsym/process/process.h"

struct jitted_by_rundown {
	const struct process *process;
	bool follows; /* it will be read again */
	struct rundown_follow *follow;
	struct reported_methods reported;
	int64_t list_due_ms;   /* when the next list is due, as diagnostics_now_ms() */
	int64_t list_after_ms; /* this long after the last one */
	int64_t stubs_due_ms;  /* when to search for stubs again if there is new code */
	int64_t stubs_last_ms; /* and when if there is none */
	char *socket_directory;
	int root_fd;
};

/* `process` must outlive it. */
void jitted_by_rundown_init(struct jitted_by_rundown *reader, const struct process *process,
			    bool follows);
void jitted_by_rundown_deinit(struct jitted_by_rundown *reader);

/* Drops all reports, and ends the session if there is one. */
void jitted_by_rundown_reset(struct jitted_by_rundown *reader);

/*
 * Requests all code, and starts a session if it will be read again.
 * `names`: as for runtime_source_open_reported().
 * Errors: those of rundown_ask(); then call jitted_by_rundown_reset().
 */
struct sym_error *
jitted_by_rundown_begin(struct jitted_by_rundown *reader, const struct clr_target *target,
			struct string_interner *names, struct runtime_source **ret)
	__attribute__((warn_unused_result));

/*
 * Applies the changes since; *ret stays NULL when there are none.
 * Only after jitted_by_rundown_begin() with `follows`.
 * Errors: those of jitted_by_rundown_begin() and rundown_follow_take().
 */
struct sym_error *
jitted_by_rundown_go_on(struct jitted_by_rundown *reader, const struct clr_target *target,
			struct string_interner *names, struct runtime_source **ret)
	__attribute__((warn_unused_result));

/* Applies what a process reported before it ended. Nothing is requested or read. */
struct sym_error *jitted_by_rundown_end(struct jitted_by_rundown *reader,
					const struct clr_target *target,
					struct string_interner *names, struct runtime_source **ret)
	__attribute__((warn_unused_result));

/* For a runtime that cannot be asked: the stubs between its methods. Errors: NO_MEMORY. */
struct sym_error *jitted_by_rundown_stubs_alone(const struct clr_target *target,
						struct runtime_source **ret)
	__attribute__((warn_unused_result));

/* False when the process is stopped; true when its state is unknown. Errors: NO_MEMORY. */
struct sym_error *jitted_by_rundown_is_running(struct jitted_by_rundown *reader, bool *ret)
	__attribute__((warn_unused_result));

#endif
