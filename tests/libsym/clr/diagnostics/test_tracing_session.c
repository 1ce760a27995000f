/* SPDX-License-Identifier: MIT */
/* The bytes of commands, as documentation/design-docs/ipc-protocol.md of dotnet/diagnostics has
 * them. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/clr/diagnostics/tracing_session.h"
#include "tests/support/diagnostics_server.h"

static const uint32_t ids[] = { 1, 80 };
static const struct sym_event_provider provider = {
	.name = "A", .keywords = 0x8001, .level = 4, .arguments = "k=v", .ids = ids, .id_count = 2
};
static const struct tracing_request request = {
	.providers = &provider, .provider_count = 1, .buffer_mb = 64, .has_stacks = true
};

/* Takes one command and answers it; its bytes in `room`. */
static size_t answer(struct diagnostics_server *server, uint8_t *room, size_t room_bytes,
		     bool knows_it)
{
	static const char refusal[] = "DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80";
	int fd = accept(server->fd, NULL, NULL);
	ssize_t count = recv(fd, room, room_bytes, 0);

	if (knows_it)
		send(fd, diagnostics_session_reply, sizeof(diagnostics_session_reply), 0);
	else
		send(fd, refusal, 24, 0);
	close(fd);
	return count > 0 ? (size_t)count : 0;
}

/* Begins a session with a runtime that knows commands up to `newest`; the command that it took. */
static size_t begin_with(uint8_t newest, uint8_t *command, size_t command_bytes,
			 struct tracing_session *session)
{
	struct diagnostics_server server;
	size_t count = 0;
	int results[2];
	pid_t child;

	cr_assert_eq(pipe(results), 0);
	diagnostics_server_begin(&server, 4711);
	child = fork();
	if (!child) {
		for (uint8_t number = 6; number >= newest; number--)
			count = answer(&server, command, command_bytes, number == newest);
		_exit(write(results[1], command, count) != (ssize_t)count);
	}
	/* The listener is this process: the child only inherited the socket. */
	cr_assert_null(tracing_session_begin(&server.place, &request, diagnostics_now_ms() + 60000,
					     session));
	count = (size_t)read(results[0], command, command_bytes);
	waitpid(child, NULL, 0);
	close(session->fd);
	close(results[0]);
	close(results[1]);
	diagnostics_server_end(&server);
	return count;
}

Test(tracing_session, asks_dotnet_10_for_single_events)
{
	static const uint8_t wanted[] = {
		'D', 'O', 'T', 'N', 'E', 'T', '_', 'I', 'P', 'C', '_', 'V', '1', 0, 90, 0, 2, 6, 0,
		0,
		/* a stream, 64 MB, nettrace, no rundown, stacks, one provider */
		0, 0, 0, 0, 64, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0,
		/* keywords, level, name, arguments */
		1, 0x80, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 'A', 0, 0, 0, 4, 0, 0, 0, 'k', 0,
		'=', 0, 'v', 0, 0, 0,
		/* only the events 1 and 80 */
		1, 2, 0, 0, 0, 1, 0, 0, 0, 80, 0, 0, 0
	};
	struct tracing_session session;
	uint8_t command[4096];

	cr_assert_eq(begin_with(6, command, sizeof(command), &session), sizeof(wanted));
	cr_expect_arr_eq(command, wanted, sizeof(wanted));
	cr_expect_eq(session.number, 7);
	cr_expect(session.has_stacks && session.has_filter);
}

Test(tracing_session, asks_an_older_runtime_for_all_events_of_the_keywords)
{
	static const uint8_t after_header[] = {
		/* 64 MB, nettrace, no rundown, stacks, one provider */
		64, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0,
	};
	struct tracing_session session;
	uint8_t command[4096];

	cr_assert_eq(begin_with(5, command, sizeof(command), &session), 20 + 21 + 32);
	cr_expect_eq(command[17], 5);
	cr_expect_arr_eq(command + 20, after_header, sizeof(after_header));
	cr_expect(session.has_stacks && !session.has_filter);
}

Test(tracing_session, has_stacks_always_with_the_oldest_command)
{
	struct tracing_session session;
	uint8_t command[4096];

	cr_assert_eq(begin_with(3, command, sizeof(command), &session), 20 + 8 + 1 + 4 + 32);
	cr_expect_eq(command[17], 3);
	cr_expect(session.has_stacks && !session.has_filter);
}
