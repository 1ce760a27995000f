/* SPDX-License-Identifier: MIT */
/*
 * A tracing session that goes on, and what it has told since it was last asked. The runtime writes
 * an event for each method that it compiles; a thread receives them.
 */
#ifndef LIBSYM_CLR_RUNDOWN_FOLLOW_H
#define LIBSYM_CLR_RUNDOWN_FOLLOW_H

#include "libsym/clr/rundown.h"
#include "libsym/clr/rundown_session.h"

struct rundown_follow;

/* `place` is copied but for its directory and descriptor, which must outlive this. */
struct sym_error *rundown_follow_open(const struct diagnostics_place *place,
				      struct rundown_follow **ret)
	__attribute__((warn_unused_result));
/* Ends the session. */
void rundown_follow_close(struct rundown_follow *follow);
/* The same where the process that it is with is not there any more: asks nobody for anything. */
void rundown_follow_abandon(struct rundown_follow *follow);

/*
 * What has arrived since the last call, methods in the order of their events; to be ended with
 * rundown_deinit(). IO when the runtime has ended the session; FORMAT, LIMIT, NO_MEMORY.
 */
struct sym_error *rundown_follow_take(struct rundown_follow *follow, struct rundown *ret)
	__attribute__((warn_unused_result));

DEFINE_GUARD(rundown_follow, struct rundown_follow *, rundown_follow_close)
#define AUTO_RUNDOWN_FOLLOW GUARDED(rundown_follow)

#endif
