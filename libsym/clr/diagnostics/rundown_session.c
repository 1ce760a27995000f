/* SPDX-License-Identifier: MIT */
#include "libsym/clr/diagnostics/rundown_session.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "libsym/base/cleanup.h"
#include "libsym/clr/diagnostics/tracing_session.h"
#include "libsym/limits.h"

/* Loader, JIT, NGen and the end of the enumeration. */
static const uint64_t rundown_keywords = 0x138;
static const uint64_t map_keyword = 0x20000; /* JittedMethodILToNativeMap */
static const int64_t idle_ms = 10000;
/*
 * Before the first byte the runtime walks all its methods. That takes seconds for a composite image
 * of .NET 9, and many times that on a busy machine.
 */
static const int64_t work_ms = 30000;
static const int64_t whole_ms = 120000;
static const int64_t stop_ms = 1000;

enum {
	BUFFER_MB = 256, /* the runtime's; a small one loses events */
	FOLLOW_BUFFER_MB = 16,
};

/* The deadline for one peer: half of the budget's waiting time, so that others can still answer. */
static int64_t patience_ends_ms(const struct diagnostics_place *place, int64_t most_ms)
{
	int64_t left_ms = budget_left_ns(place->account, BUDGET_WAIT) / 1000000;

	if (left_ms < INT64_MAX / 1000000 && left_ms / 2 < most_ms)
		most_ms = left_ms / 2;
	return diagnostics_now_ms() + most_ms;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

size_t rundown_session_most_bytes(const struct budget_account *account)
{
	static const uint64_t share = 8;

	return account && account->most_bytes / share < LIMIT_RUNDOWN_BYTES
		       ? (size_t)(account->most_bytes / share)
		       : LIMIT_RUNDOWN_BYTES;
}

struct sym_error *rundown_session_record(const struct diagnostics_place *place, uint32_t flags,
					 struct buf *stream)
{
	/* A session needs a provider. With keyword 0 at level 1 this one sends nothing. */
	static const struct sym_event_provider silent = {
		.name = "Microsoft-Windows-DotNETRuntimePrivate", .level = 1
	};
	const struct tracing_request request = {
		.providers = &silent,
		.provider_count = 1,
		.buffer_mb = BUFFER_MB,
		.rundown_keywords = rundown_keywords | (flags & RUNDOWN_WITH_MAPS ? map_keyword : 0)
	};
	int64_t deadline_ms = patience_ends_ms(place, whole_ms);
	int stop_fd AUTO_CLOSE = -1; /* stays open: its answer comes after the end of the stream */
	struct tracing_session session;
	struct sym_error *error;

	error = tracing_session_begin(
		place, &request, sooner(deadline_ms, diagnostics_now_ms() + idle_ms), &session);
	if (error)
		return error;
	error = tracing_session_stop(place, session.number,
				     sooner(deadline_ms, diagnostics_now_ms() + idle_ms), &stop_fd);
	/* If this fails, closing the connection ends the session too. */
	if (!error)
		error = diagnostics_drain(place, session.fd, stream, work_ms, deadline_ms);
	close(session.fd);
	return error;
}

/* ---- going on ------------------------------------------------------------------ */

struct sym_error *rundown_session_follow(const struct diagnostics_place *place, int *fd_ret,
					 uint64_t *session_ret)
{
	/* Loader and JIT. Below level 5 newer runtimes omit the names (10.0.12). */
	static const struct sym_event_provider methods = {
		.name = "Microsoft-Windows-DotNETRuntime", .keywords = 0x18, .level = 5
	};
	const struct tracing_request request = { .providers = &methods,
						 .provider_count = 1,
						 .buffer_mb = FOLLOW_BUFFER_MB };
	struct tracing_session session;
	struct sym_error *error =
		tracing_session_begin(place, &request, patience_ends_ms(place, idle_ms), &session);

	if (error)
		return error;
	*fd_ret = session.fd;
	*session_ret = session.number;
	return NULL;
}

void rundown_session_stop(const struct diagnostics_place *place, uint64_t session)
{
	int fd AUTO_CLOSE = -1;

	sym_error_destroy(
		tracing_session_stop(place, session, diagnostics_now_ms() + stop_ms, &fd));
}

struct sym_error *rundown_session_receive(int fd, struct buf *stream, bool *ended_ret)
{
	static const size_t step_bytes = 1 << 16, most_bytes = 16 << 20;
	const size_t before_bytes = stream->size_bytes;

	*ended_ret = false;
	while (stream->size_bytes - before_bytes < most_bytes) {
		char *room = buf_reserve(stream, step_bytes);
		ssize_t count;

		if (!room)
			return sym_error_from_buf(stream, "events of the runtime");
		count = recv(fd, room, step_bytes, MSG_DONTWAIT);
		if (count > 0)
			stream->size_bytes += (size_t)count;
		*ended_ret = !count || (count < 0 && errno == ECONNRESET);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0 && errno != EAGAIN && errno != ECONNRESET)
			return sym_error_from_errno(errno, NULL, "diagnostics socket: cannot read");
		if (count <= 0)
			break;
	}
	return NULL;
}
