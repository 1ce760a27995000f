/* SPDX-License-Identifier: MIT */
/*
 * A tracing session that goes on, and what it has told since it was last asked. The runtime writes
 * an event for each method that it compiles.
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

/*
 * Receives what has arrived, for the next rundown_follow_take(): what nobody receives fills the
 * runtime's buffer, and then it drops events. Does not wait. To be called when rundown_follow_fd()
 * is readable; that is -1 when there is nothing to be received before the next take.
 */
void rundown_follow_receive(struct rundown_follow *follow);
int rundown_follow_fd(const struct rundown_follow *follow);

DEFINE_GUARD(rundown_follow, struct rundown_follow *, rundown_follow_close)
#define AUTO_RUNDOWN_FOLLOW GUARDED(rundown_follow)

#endif
