/* SPDX-License-Identifier: MIT */
/*
 * Starts and stops an event session of the runtime: commands 1 to 6 of the set EventPipe.
 * It knows the commands of each version of the runtime, not what the events mean.
 */
#ifndef LIBSYM_CLR_DIAGNOSTICS_TRACING_SESSION_H
#define LIBSYM_CLR_DIAGNOSTICS_TRACING_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/clr/diagnostics/diagnostics_socket.h"
#include "libsym/error.h"
#include "libsym/sym_events.h"

struct tracing_request {
	const struct sym_event_provider *providers; /* at least one */
	size_t provider_count;
	uint32_t buffer_mb;        /* in the runtime; a small one loses events */
	uint64_t rundown_keywords; /* of the list at the end; 0: none */
	bool has_stacks;           /* where the runtime lets one choose (.NET 9 on) */
};

/* A session under way. */
struct tracing_session {
	int fd; /* of the stream; does not block */
	uint64_t number;
	bool has_stacks;
	bool has_filter; /* only the events of sym_event_provider.ids are sent */
};

/*
 * Asks with the newest command that the runtime has: it costs the runtime least. `deadline_ms`: as
 * diagnostics_now_ms(), for all commands together.
 * Errors: those of diagnostics_connect(); UNSUPPORTED when the runtime has no sessions, or rejects
 * this one.
 */
struct sym_error *tracing_session_begin(const struct diagnostics_place *place,
					const struct tracing_request *request, int64_t deadline_ms,
					struct tracing_session *ret)
	__attribute__((warn_unused_result));

/*
 * Asks the runtime to end the session. Its answer comes after the end of the stream, so *fd_ret
 * stays open until then.
 */
struct sym_error *tracing_session_stop(const struct diagnostics_place *place, uint64_t number,
				       int64_t deadline_ms, int *fd_ret)
	__attribute__((warn_unused_result));

#endif
