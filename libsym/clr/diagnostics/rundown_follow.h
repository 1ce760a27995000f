/* SPDX-License-Identifier: MIT */
/*
 * A tracing session that continues, and what it has reported since the last call.
 * The runtime sends an event for each method that it compiles; a thread receives them.
 */
#ifndef LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_FOLLOW_H
#define LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_FOLLOW_H

#include "libsym/clr/diagnostics/rundown.h"
#include "libsym/clr/diagnostics/rundown_session.h"

struct rundown_follow;

/* Copies `place`, except its directory and descriptor, which must outlive this. */
struct sym_error *rundown_follow_open(const struct diagnostics_place *place,
				      struct rundown_follow **ret)
	__attribute__((warn_unused_result));
/* Ends the session. */
void rundown_follow_close(struct rundown_follow *follow);
/* Ends the session of a process that is gone: nothing is sent. */
void rundown_follow_abandon(struct rundown_follow *follow);

/*
 * Takes what has arrived since the last call, methods in the order of their events. Free it with
 * rundown_deinit().
 * Errors: IO when the runtime has ended the session; FORMAT; LIMIT; NO_MEMORY.
 */
struct sym_error *rundown_follow_take(struct rundown_follow *follow, struct rundown *ret)
	__attribute__((warn_unused_result));

DEFINE_GUARD(rundown_follow, struct rundown_follow *, rundown_follow_close)
#define AUTO_RUNDOWN_FOLLOW GUARDED(rundown_follow)

#endif
