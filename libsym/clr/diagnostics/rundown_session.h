/* SPDX-License-Identifier: MIT */
/*
 * Tracing sessions over the diagnostics socket: one that is stopped at once, for the list at its
 * end, and one that continues, for changes.
 * It knows commands and deadlines, not the meaning of events.
 */
#ifndef LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_SESSION_H
#define LIBSYM_CLR_DIAGNOSTICS_RUNDOWN_SESSION_H

#include <stdbool.h>

#include "libsym/base/buf.h"
#include "libsym/clr/diagnostics/diagnostics_socket.h"
#include "libsym/error.h"

enum rundown_session_flags {
	/* Also IL maps of jitted methods, which .NET 9 and later send on request only. */
	RUNDOWN_WITH_MAPS = 1 << 0,
};

/* Records the whole stream of a session that is stopped at once. */
struct sym_error *rundown_session_record(const struct diagnostics_place *place, uint32_t flags,
					 struct buf *stream) __attribute__((warn_unused_result));

/*
 * Several runtimes may be asked at the same time. An endless stream leaves memory for the others.
 */
size_t rundown_session_most_bytes(const struct budget_account *account);

/*
 * Starts a session that reports methods and modules as they are loaded and unloaded, without a list
 * at its end.
 * It ends when *fd_ret is closed. Call rundown_session_stop() first, so that the runtime can
 * finish.
 */
struct sym_error *rundown_session_follow(const struct diagnostics_place *place, int *fd_ret,
					 uint64_t *session_ret) __attribute__((warn_unused_result));
void rundown_session_stop(const struct diagnostics_place *place, uint64_t session);

/*
 * Appends what has arrived, without waiting, up to 16 MB at once. *ended_ret: the peer has closed
 * the connection.
 */
struct sym_error *rundown_session_receive(int fd, struct buf *stream, bool *ended_ret)
	__attribute__((warn_unused_result));

#endif
