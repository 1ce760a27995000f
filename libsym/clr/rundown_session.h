/* SPDX-License-Identifier: MIT */
/*
 * Tracing sessions over the diagnostics socket: one that is stopped at once, for the list that
 * the runtime gives at its end, and one that goes on, for what is added. Knows commands and
 * deadlines; not what events mean.
 */
#ifndef LIBSYM_CLR_RUNDOWN_SESSION_H
#define LIBSYM_CLR_RUNDOWN_SESSION_H

#include <stdbool.h>

#include "libsym/base/buf.h"
#include "libsym/clr/diagnostics_socket.h"
#include "libsym/error.h"

/* The whole stream of a session that does nothing but end. */
struct sym_error *rundown_session_record(const struct diagnostics_place *place, struct buf *stream)
	__attribute__((warn_unused_result));

/*
 * Begins a session that tells of methods and modules as they are loaded and unloaded, without a
 * list at its end. It ends when *fd_ret is closed; rundown_session_stop() is politer.
 */
struct sym_error *rundown_session_follow(const struct diagnostics_place *place, int *fd_ret,
					 uint64_t *session_ret) __attribute__((warn_unused_result));
void rundown_session_stop(const struct diagnostics_place *place, uint64_t session);

/* Appends what has arrived, without waiting, up to 16 MB at once. *ended_ret: the other side has
 * closed. */
struct sym_error *rundown_session_receive(int fd, struct buf *stream, bool *ended_ret)
	__attribute__((warn_unused_result));

#endif
