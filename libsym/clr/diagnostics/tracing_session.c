/* SPDX-License-Identifier: MIT */
/*
 * CollectTracing5 (6, .NET 10 on): u32 0 (a stream), u32 buffer MB, u32 format 1, u64 keywords of
 * the rundown, u8 stacks, providers, each with a filter.
 * CollectTracing4 (5, .NET 9 on): u32 buffer MB, u32 format 1, u64 keywords of the rundown,
 * u8 stacks, providers.
 * CollectTracing3 (4, .NET 9 on): u32 buffer MB, u32 format 1, u8 rundown, u8 stacks, providers.
 * CollectTracing2 (3, Core 3.0 on): u32 buffer MB, u32 format 1, u8 rundown, providers; always with
 * stacks.
 * Providers: u32 count; each u64 keywords, u32 level, string name, string arguments.
 * Filter: u8 1 (only these events) or 0 (all but these), u32 count, u32 id each.
 * Reply: u64 session, then the stream.
 * StopTracing {u64 session} needs another connection.
 * Spec: dotnet/diagnostics documentation/design-docs/ipc-protocol.md. Which runtime has which
 * command was tried with 8.0.33, 9.0.22 and 10.0.12.
 */
#include "libsym/clr/diagnostics/tracing_session.h"

#include <endian.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/reader.h"

enum {
	SET_EVENT_PIPE = 2,
	COMMAND_STOP = 1,
	COMMAND_COLLECT2 = 3,
	COMMAND_COLLECT3 = 4,
	COMMAND_COLLECT4 = 5,
	COMMAND_COLLECT5 = 6,
	MOST_MESSAGE_BYTES = 60000,
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

/* Appends u32 units with the NUL, then UTF-16; the input is ASCII. NULL has no units. */
static void append_text(struct buf *buf, const char *text)
{
	append_u32(buf, text ? (uint32_t)strlen(text) + 1 : 0);
	while (text) {
		buf_append_char(buf, *text);
		buf_append_char(buf, '\0');
		if (!*text++)
			return;
	}
}

static void append_provider(struct buf *buf, uint8_t command,
			    const struct sym_event_provider *provider)
{
	append_u64(buf, provider->keywords);
	append_u32(buf, provider->level);
	append_text(buf, provider->name);
	append_text(buf, provider->arguments);
	if (command != COMMAND_COLLECT5)
		return;
	buf_append_char(buf, provider->id_count > 0);
	append_u32(buf, (uint32_t)provider->id_count);
	for (size_t i = 0; i < provider->id_count; i++)
		append_u32(buf, provider->ids[i]);
}

static void append_request(struct buf *buf, uint8_t command, const struct tracing_request *request)
{
	if (command == COMMAND_COLLECT5)
		append_u32(buf, 0); /* over this connection */
	append_u32(buf, request->buffer_mb);
	append_u32(buf, 1); /* nettrace */
	if (command >= COMMAND_COLLECT4)
		append_u64(buf, request->rundown_keywords);
	else
		buf_append_char(buf, request->rundown_keywords != 0);
	if (command != COMMAND_COLLECT2)
		buf_append_char(buf, request->has_stacks);
	append_u32(buf, (uint32_t)request->provider_count);
	for (size_t i = 0; i < request->provider_count; i++)
		append_provider(buf, command, &request->providers[i]);
}

static struct sym_error *send_request(const struct diagnostics_place *place, int fd,
				      uint8_t command, const struct tracing_request *request,
				      int64_t deadline_ms)
{
	struct sym_error *error;
	struct buf message;

	buf_init(&message, MOST_MESSAGE_BYTES);
	buf_charge(&message, place->account);
	append_request(&message, command, request);
	error = message.failure != BUF_OK
			? sym_error_from_buf(&message, "a command with these providers")
			: diagnostics_send(fd, SET_EVENT_PIPE, command, message.data,
					   message.size_bytes, deadline_ms);
	buf_deinit(&message);
	return error;
}

/* ret->fd is -1 when the runtime does not have the command. */
static struct sym_error *try_command(const struct diagnostics_place *place, uint8_t command,
				     const struct tracing_request *request, int64_t deadline_ms,
				     struct tracing_session *ret)
{
	int fd AUTO_CLOSE = -1;
	struct buf message;
	struct reader reader;
	uint32_t result = 0;
	struct sym_error *error = diagnostics_connect(place, deadline_ms, &fd);

	*ret = (struct tracing_session){ .fd = -1 };
	if (!error)
		error = send_request(place, fd, command, request, deadline_ms);
	if (error)
		return error;
	buf_init(&message, 4096);
	error = diagnostics_receive(place, fd, &message, &result, deadline_ms);
	reader = reader_over(message.data, message.size_bytes);
	ret->number = reader_u64(&reader);
	buf_deinit(&message);
	if (error || result == DIAGNOSTICS_UNKNOWN_COMMAND)
		return error;
	if (result != DIAGNOSTICS_OK || !reader_ok(&reader))
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"the runtime rejected a tracing session (0x%08x)", result);
	ret->fd = steal_fd(&fd);
	ret->has_stacks = request->has_stacks || command == COMMAND_COLLECT2;
	ret->has_filter = command == COMMAND_COLLECT5;
	return NULL;
}

static bool has_filter(const struct tracing_request *request)
{
	for (size_t i = 0; i < request->provider_count; i++)
		if (request->providers[i].id_count)
			return true;
	return false;
}

struct sym_error *tracing_session_begin(const struct diagnostics_place *place,
					const struct tracing_request *request, int64_t deadline_ms,
					struct tracing_session *ret)
{
	static const uint8_t commands[] = { COMMAND_COLLECT5, COMMAND_COLLECT4, COMMAND_COLLECT3,
					    COMMAND_COLLECT2 };
	struct sym_error *error = NULL;

	*ret = (struct tracing_session){ .fd = -1 };
	for (size_t i = !has_filter(request); !error && ret->fd < 0 && i < sizeof(commands); i++)
		error = try_command(place, commands[i], request, deadline_ms, ret);
	if (!error && ret->fd < 0)
		error = sym_error_create(SYM_ERROR_UNSUPPORTED,
					 "the runtime does not support tracing sessions");
	return error;
}

struct sym_error *tracing_session_stop(const struct diagnostics_place *place, uint64_t number,
				       int64_t deadline_ms, int *fd_ret)
{
	int fd AUTO_CLOSE = -1;
	uint64_t payload = htole64(number);
	struct sym_error *error = diagnostics_connect(place, deadline_ms, &fd);

	if (!error)
		error = diagnostics_send(fd, SET_EVENT_PIPE, COMMAND_STOP, &payload,
					 sizeof(payload), deadline_ms);
	if (!error)
		*fd_ret = steal_fd(&fd);
	return error;
}
