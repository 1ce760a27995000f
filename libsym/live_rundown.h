/* SPDX-License-Identifier: MIT */
/*
 * The jitted code of a process as the runtime in it tells it over its diagnostics socket: all of it
 * once, and, for one who goes on asking, what has come and gone since. Knows in which order the
 * runtime has to be asked so that nothing is missing, and when it has to be asked for all again;
 * not what else could tell.
 */
#ifndef LIBSYM_LIVE_RUNDOWN_H
#define LIBSYM_LIVE_RUNDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/process.h"
#include "libsym/source/runtime_source.h"

struct live_rundown {
	const struct process *process;
	bool follows; /* it will be asked again */
	struct rundown_follow *follow;
	struct told_methods told;
	int64_t list_due_ms;   /* when another list is due, by diagnostics_now_ms() */
	int64_t list_after_ms; /* as long after the one before */
	int64_t stubs_due_ms;  /* when to look for stubs again, where there is something new */
	int64_t stubs_last_ms; /* and where there is not */
	char *socket_directory;
	int root_fd;
};

/* `process` must outlive it. */
void live_rundown_init(struct live_rundown *reader, const struct process *process, bool follows);
void live_rundown_deinit(struct live_rundown *reader);

/* Forgets what was told, and ends the session if there is one. */
void live_rundown_reset(struct live_rundown *reader);

/*
 * What the runtime has now, and the beginning of a session if it will be asked again. `names` as
 * for runtime_source_open_told(). Errors: those of rundown_ask(); live_rundown_reset() is to
 * follow.
 */
struct sym_error *live_rundown_begin(struct live_rundown *reader,
				     const struct sym_snapshot *snapshot,
				     struct index_name_set *names, struct runtime_source **ret)
	__attribute__((warn_unused_result));

/* The same with what has come and gone since; *ret stays NULL when nothing is otherwise. Only after
 * live_rundown_begin() of one that follows. Errors: as there, and those of rundown_follow_take().
 */
struct sym_error *live_rundown_go_on(struct live_rundown *reader,
				     const struct sym_snapshot *snapshot,
				     struct index_name_set *names, struct runtime_source **ret)
	__attribute__((warn_unused_result));

/* The same of a process that has ended: what it told before. Nobody is asked for what is missing,
 * and nothing is looked at. */
struct sym_error *live_rundown_end(struct live_rundown *reader, const struct sym_snapshot *snapshot,
				   struct index_name_set *names, struct runtime_source **ret)
	__attribute__((warn_unused_result));

/* Of a runtime that cannot be asked: the code between its methods. Errors: NO_MEMORY. */
struct sym_error *live_rundown_stubs_alone(const struct sym_snapshot *snapshot,
					   struct runtime_source **ret)
	__attribute__((warn_unused_result));

/* False when the process is stopped; true also when that cannot be told. Errors: NO_MEMORY. */
struct sym_error *live_rundown_is_running(struct live_rundown *reader, bool *ret)
	__attribute__((warn_unused_result));

#endif
