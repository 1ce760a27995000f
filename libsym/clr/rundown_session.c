/* SPDX-License-Identifier: MIT */
/*
 * CollectTracing4 (.NET 9 on): u32 buffer MB, u32 format 1, u64 keywords of the rundown, u8 stacks,
 * providers. CollectTracing3 (.NET 8 on): u32 buffer MB, u32 format 1, u8 rundown, u8 stacks,
 * providers. CollectTracing2 (Core 3.0 on): the same without stacks, which it always has.
 * Providers: u32 count, each u64 keywords, u32 level, string name, string arguments.
 * Reply: u64 session, then the stream. StopTracing {u64 session} goes over another connection.
 */
#include "libsym/clr/rundown_session.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/reader.h"

/* Loader, JIT, NGen and the end of the enumeration. */
static const uint64_t rundown_keywords = 0x138;
static const int64_t idle_ms = 10000;
/* Before the first byte the runtime walks all its methods: seconds for a composite of .NET 9, and
 * many times that on a busy machine. */
static const int64_t work_ms = 30000;
static const int64_t whole_ms = 120000;
static const int64_t stop_ms = 1000;

enum {
	SET_EVENT_PIPE = 2,
	COMMAND_STOP = 1,
	COMMAND_COLLECT2 = 3,
	COMMAND_COLLECT3 = 4,
	COMMAND_COLLECT4 = 5,
	BUFFER_MB = 256, /* the runtime's; too small a one loses events */
	FOLLOW_BUFFER_MB = 16,
};

struct request {
	uint8_t command;
	uint32_t buffer_mb;
	bool rundown;
	uint64_t keywords;
	uint32_t level;
	const char *provider;
};

static void append_u32(struct buf *buf, uint32_t value)
{
	value = htole32(value);
	buf_append(buf, &value, sizeof(value));
}

static void append_u64(struct buf *buf, uint64_t value)
{
	value = htole64(value);
	buf_append(buf, &value, sizeof(value));
}

/* u32 units with the NUL, UTF-16; ASCII in. */
static void append_text(struct buf *buf, const char *text)
{
	append_u32(buf, (uint32_t)strlen(text) + 1);
	for (;; text++) {
		buf_append_char(buf, *text);
		buf_append_char(buf, '\0');
		if (!*text)
			return;
	}
}

static void append_request(struct buf *buf, const struct request *request)
{
	append_u32(buf, request->buffer_mb);
	append_u32(buf, 1); /* nettrace */
	if (request->command == COMMAND_COLLECT4) {
		append_u64(buf, request->rundown ? rundown_keywords : 0);
	} else {
		buf_append_char(buf, request->rundown);
	}
	if (request->command != COMMAND_COLLECT2)
		buf_append_char(buf, 0); /* no stacks */
	append_u32(buf, 1);
	append_u64(buf, request->keywords);
	append_u32(buf, request->level);
	append_text(buf, request->provider);
	append_u32(buf, 0); /* no arguments */
}

/* *fd_ret is -1 when the runtime does not know the command. */
static struct sym_error *begin_session(const struct diagnostics_place *place,
				       const struct request *request, int64_t deadline_ms,
				       int *fd_ret, uint64_t *session_ret)
{
	int fd AUTO_CLOSE = -1;
	struct buf message;
	struct reader reader;
	uint32_t result = 0;
	struct sym_error *error = diagnostics_connect(place, deadline_ms, &fd);

	if (error)
		return error;
	buf_init(&message, 4096);
	append_request(&message, request);
	error = diagnostics_send(fd, SET_EVENT_PIPE, request->command, message.data,
				 message.size_bytes, deadline_ms);
	buf_clear(&message);
	if (!error)
		error = diagnostics_receive(place, fd, &message, &result, deadline_ms);
	reader = reader_over(message.data, message.size_bytes);
	*session_ret = reader_u64(&reader);
	buf_deinit(&message);
	*fd_ret = -1;
	if (error || result == DIAGNOSTICS_UNKNOWN_COMMAND)
		return error;
	if (result != DIAGNOSTICS_OK || !reader_ok(&reader))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"the runtime refuses a tracing session (0x%08x)", result);
	*fd_ret = steal_fd(&fd);
	return NULL;
}

static struct sym_error *stop_session(const struct diagnostics_place *place, uint64_t session,
				      int64_t deadline_ms, int *fd_ret)
{
	int fd AUTO_CLOSE = -1;
	uint64_t payload = htole64(session);
	struct sym_error *error = diagnostics_connect(place, deadline_ms, &fd);

	if (!error)
		error = diagnostics_send(fd, SET_EVENT_PIPE, COMMAND_STOP, &payload,
					 sizeof(payload), deadline_ms);
	if (!error)
		*fd_ret = steal_fd(&fd);
	return error;
}

struct sym_error *rundown_session_record(const struct diagnostics_place *place, struct buf *stream)
{
	/* A session needs a provider. Nothing of this one at level 1 is switched on by keyword 0.
	 */
	const struct request request = {
		COMMAND_COLLECT4, BUFFER_MB, true, 0, 1, "Microsoft-Windows-DotNETRuntimePrivate"
	};
	const struct request older = {
		COMMAND_COLLECT2, BUFFER_MB, true, 0, 1, "Microsoft-Windows-DotNETRuntimePrivate"
	};
	int64_t deadline_ms = diagnostics_now_ms() + whole_ms;
	int fd AUTO_CLOSE = -1;
	int stop_fd AUTO_CLOSE = -1; /* stays open: its answer comes when the stream has ended */
	uint64_t session;
	struct sym_error *error;

	error = begin_session(place, &request, diagnostics_now_ms() + idle_ms, &fd, &session);
	if (!error && fd < 0)
		error = begin_session(place, &older, diagnostics_now_ms() + idle_ms, &fd, &session);
	if (!error && fd < 0)
		error = sym_error_create(SYM_ERROR_UNSUPPORTED,
					 "the runtime knows no tracing session");
	if (!error)
		error = stop_session(place, session, diagnostics_now_ms() + idle_ms, &stop_fd);
	/* If this ends early, closing the connection ends the session too. */
	return error ? error : diagnostics_drain(place, fd, stream, work_ms, deadline_ms);
}

/* ---- going on ------------------------------------------------------------------ */

struct sym_error *rundown_session_follow(const struct diagnostics_place *place, int *fd_ret,
					 uint64_t *session_ret)
{
	/* The later, the less it costs the runtime. */
	static const uint8_t commands[] = { COMMAND_COLLECT4, COMMAND_COLLECT3, COMMAND_COLLECT2 };
	/* Loader and JIT; below level 5 newer runtimes leave the names out (10.0.12). */
	struct request request = { .buffer_mb = FOLLOW_BUFFER_MB,
				   .keywords = 0x18,
				   .level = 5,
				   .provider = "Microsoft-Windows-DotNETRuntime" };
	int fd AUTO_CLOSE = -1;
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && fd < 0 && i < sizeof(commands); i++) {
		request.command = commands[i];
		error = begin_session(place, &request, diagnostics_now_ms() + idle_ms, &fd,
				      session_ret);
	}
	if (!error && fd < 0)
		error = sym_error_create(SYM_ERROR_UNSUPPORTED,
					 "the runtime knows no tracing session");
	if (!error)
		*fd_ret = steal_fd(&fd);
	return error;
}

void rundown_session_stop(const struct diagnostics_place *place, uint64_t session)
{
	int fd AUTO_CLOSE = -1;

	sym_error_destroy(stop_session(place, session, diagnostics_now_ms() + stop_ms, &fd));
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
