/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/clr/diagnostics/rundown.h"
#include "tests/support/diagnostics_server.h"

static void assert_error(struct sym_error *error, enum sym_error_code code, const char *word)
{
	cr_assert_not_null(error, "no error: %s", word);
	cr_assert_eq(sym_error_code(error), code, "%s", sym_error_message(error));
	cr_assert(strstr(sym_error_message(error), word), "%s", sym_error_message(error));
	sym_error_destroy(error);
}

/* Accepts a connection, reads one command, and replies with these bytes. */
static void answer(struct diagnostics_server *server, const void *bytes, size_t size_bytes)
{
	uint8_t command[4096];
	int fd = accept(server->fd, NULL, NULL);

	cr_assert_geq(recv(fd, command, sizeof(command), 0), 20);
	cr_assert_eq(memcmp(command, "DOTNET_IPC_V1", 14), 0);
	cr_assert_eq(send(fd, bytes, size_bytes, 0), (ssize_t)size_bytes);
	close(fd);
}

static struct sym_error *exchange(struct diagnostics_server *server, const void *bytes,
				  size_t size_bytes, struct buf *payload, uint32_t *result)
{
	struct sym_error *error;
	int fd = -1;

	error = diagnostics_connect(&server->place, diagnostics_now_ms() + 5000, &fd);
	cr_assert_null(error);
	cr_assert_null(diagnostics_send(fd, 2, 5, "abc", 3, diagnostics_now_ms() + 5000));
	answer(server, bytes, size_bytes);
	error = diagnostics_receive(&server->place, fd, payload, result,
				    diagnostics_now_ms() + 5000);
	close(fd);
	return error;
}

Test(diagnostics_socket, reads_a_reply)
{
	static const char reply[] = "DOTNET_IPC_V1\0\x1c\0\xff\0\0\0\1\2\3\4\5\6\7\10";
	struct diagnostics_server server;
	struct buf payload;
	uint32_t result = 1;

	diagnostics_server_begin(&server, 4711);
	buf_init(&payload, 100);
	cr_assert_null(exchange(&server, reply, 28, &payload, &result));
	cr_assert_eq(result, DIAGNOSTICS_OK);
	cr_assert_eq(payload.size_bytes, 8);
	cr_assert_eq(payload.data[7], 8);
	buf_deinit(&payload);
	diagnostics_server_end(&server);
}

Test(diagnostics_socket, reads_an_error_reply)
{
	static const char reply[] = "DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80";
	struct diagnostics_server server;
	struct buf payload;
	uint32_t result = 0;

	diagnostics_server_begin(&server, 4711);
	buf_init(&payload, 100);
	cr_assert_null(exchange(&server, reply, 24, &payload, &result));
	cr_assert_eq(result, DIAGNOSTICS_UNKNOWN_COMMAND);
	buf_deinit(&payload);
	diagnostics_server_end(&server);
}

Test(diagnostics_socket, finds_a_socket_with_another_start_time)
{
	struct diagnostics_server server;
	int fd = -1;

	diagnostics_server_begin(&server, 99);
	cr_assert_null(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd));
	close(fd);
	diagnostics_server_end(&server);
}

Test(diagnostics_socket, rejects_malformed_replies)
{
	static const struct {
		const char *bytes;
		size_t size_bytes;
		enum sym_error_code code;
	} replies[] = {
		{ "DOTNET_IPC_V2\0\x14\0\xff\0\0\0", 20, SYM_ERROR_FORMAT },
		{ "DOTNET_IPC_V1\0\x13\0\xff\0\0\0", 20, SYM_ERROR_FORMAT },
		{ "DOTNET_IPC_V1\0\x14\0\x02\0\0\0", 20, SYM_ERROR_FORMAT },
		{ "DOTNET_IPC_V1\0\x14\0\xff\xff\0\0", 20, SYM_ERROR_FORMAT },
		{ "DOTNET_IPC_V1\0\x1c\0\xff\0\0\0ab", 22, SYM_ERROR_IO },
		{ "DOTNET", 6, SYM_ERROR_IO },
		{ "DOTNET_IPC_V1\0\xff\xff\xff\0\0\0", 20, SYM_ERROR_LIMIT },
	};

	for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++) {
		struct diagnostics_server server;
		struct buf payload;
		uint32_t result;

		diagnostics_server_begin(&server, 4711);
		buf_init(&payload, 100);
		assert_error(exchange(&server, replies[i].bytes, replies[i].size_bytes, &payload,
				      &result),
			     replies[i].code, "");
		buf_deinit(&payload);
		diagnostics_server_end(&server);
	}
}

Test(diagnostics_socket, reports_a_missing_socket)
{
	struct diagnostics_server server;
	int fd;

	diagnostics_server_begin(&server, 4711);
	server.place.namespace_pid = 1;
	assert_error(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd),
		     SYM_ERROR_NOT_FOUND, "no diagnostics socket");
	server.place.namespace_pid = getpid();
	server.place.uid = geteuid() + 1;
	assert_error(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd),
		     SYM_ERROR_NOT_FOUND, "no diagnostics socket");
	server.place.directory = "/nonexistent";
	assert_error(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd),
		     SYM_ERROR_NOT_FOUND, "/nonexistent");
	diagnostics_server_end(&server);
}

/* The socket of a killed process whose PID this process has by now. */
Test(diagnostics_socket, takes_a_socket_without_listener_for_none)
{
	struct diagnostics_server server;
	int fd;

	diagnostics_server_begin(&server, 99);
	close(server.fd);
	server.fd = -1;
	assert_error(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd),
		     SYM_ERROR_NOT_FOUND, "no diagnostics socket");
	diagnostics_server_end(&server);
}

Test(diagnostics_socket, does_not_follow_a_link_to_another_socket)
{
	struct diagnostics_server server;
	char elsewhere[128];
	int fd;

	diagnostics_server_begin(&server, 4711);
	snprintf(elsewhere, sizeof(elsewhere), "%s/real", server.directory);
	cr_assert_eq(rename(server.path, elsewhere), 0);
	cr_assert_eq(symlink("real", server.path), 0);
	assert_error(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd),
		     SYM_ERROR_NOT_FOUND, "no diagnostics socket");
	unlink(elsewhere);
	diagnostics_server_end(&server);
}

Test(diagnostics_socket, rejects_a_socket_of_another_process)
{
	struct diagnostics_server server;
	int fd;

	diagnostics_server_begin(&server, 4711);
	server.place.pid = getpid() + 1;
	assert_error(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd),
		     SYM_ERROR_PERMISSION, "listens on it");
	diagnostics_server_end(&server);
}

static void ask_a_stopped_process(bool traced, const char *why)
{
	struct diagnostics_server server;
	int fd = -1, status;
	pid_t child;

	diagnostics_server_begin(&server, 4711);
	cr_assert_eq(fcntl(server.fd, F_SETFL, O_NONBLOCK), 0);
	child = fork();
	if (!child) {
		if (traced && ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		raise(SIGSTOP);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	server.place.pid = child;
	assert_error(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd),
		     SYM_ERROR_IO, why);
	cr_expect_eq(accept(server.fd, NULL, NULL), -1, "it was asked");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	diagnostics_server_end(&server);
}

Test(diagnostics_socket, sends_nothing_to_a_stopped_process)
{
	ask_a_stopped_process(false, "is stopped (SIGSTOP)");
}

Test(diagnostics_socket, sends_nothing_to_a_process_stopped_by_a_debugger)
{
	ask_a_stopped_process(true, "is stopped (by a debugger)");
}

Test(diagnostics_socket, gives_up_on_a_peer_that_never_answers)
{
	struct diagnostics_server server;
	struct buf payload;
	uint32_t result;
	int fd = -1;

	diagnostics_server_begin(&server, 4711);
	buf_init(&payload, 100);
	cr_assert_null(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd));
	cr_assert_null(diagnostics_send(fd, 2, 5, "abc", 3, diagnostics_now_ms() + 5000));
	assert_error(diagnostics_receive(&server.place, fd, &payload, &result,
					 diagnostics_now_ms() + 30),
		     SYM_ERROR_IO, "no answer in time");
	assert_error(
		diagnostics_drain(&server.place, fd, &payload, 30, diagnostics_now_ms() + 5000),
		SYM_ERROR_LIMIT, "");
	buf_deinit(&payload);
	buf_init(&payload, 1 << 20);
	assert_error(
		diagnostics_drain(&server.place, fd, &payload, 30, diagnostics_now_ms() + 5000),
		SYM_ERROR_IO, "no answer in time");
	assert_error(
		diagnostics_drain(&server.place, fd, &payload, 5000, diagnostics_now_ms() + 30),
		SYM_ERROR_IO, "no answer in time");
	buf_deinit(&payload);
	close(fd);
	diagnostics_server_end(&server);
}

Test(diagnostics_socket, stops_waiting_for_a_stopped_process)
{
	struct diagnostics_server server;
	struct buf payload;
	uint32_t result;
	int status, fd = -1;
	int64_t begin_ms;
	pid_t child;

	diagnostics_server_begin(&server, 4711);
	buf_init(&payload, 1 << 20);
	cr_assert_null(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd));
	child = fork();
	if (!child)
		for (;;)
			pause();
	server.place.pid = child;
	cr_assert_null(diagnostics_check_running(&server.place));
	kill(child, SIGSTOP);
	cr_assert_eq(waitpid(child, &status, WUNTRACED), child);
	begin_ms = diagnostics_now_ms();
	assert_error(diagnostics_receive(&server.place, fd, &payload, &result, begin_ms + 600000),
		     SYM_ERROR_IO, "is stopped (SIGSTOP)");
	assert_error(diagnostics_drain(&server.place, fd, &payload, 600000, begin_ms + 600000),
		     SYM_ERROR_IO, "is stopped (SIGSTOP)");
	cr_expect_lt(diagnostics_now_ms() - begin_ms, 300000, "it was waited for");
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	buf_deinit(&payload);
	close(fd);
	diagnostics_server_end(&server);
}

/* ---- a whole session ------------------------------------------------------------ */

/* As .NET 8: rejects commands 5 and 4, accepts 3, and ends the stream on the stop command. */
static void play_runtime(struct diagnostics_server *server)
{
	static const char refusal[] = "DOTNET_IPC_V1\0\x18\0\xff\xff\0\0\x85\x13\x13\x80";
	static const char stream[] = "Nettrace\x14\0\0\0!FastSerialization.1\1";
	uint8_t command[4096];
	int session, stop;
	bool good = true;

	for (uint8_t newer = 5; newer > 3; newer--) {
		int fd = accept(server->fd, NULL, NULL);

		good = good && recv(fd, command, sizeof(command), 0) > 20 && command[17] == newer;
		send(fd, refusal, 24, 0);
		close(fd);
	}
	session = accept(server->fd, NULL, NULL);
	good = good && recv(session, command, sizeof(command), 0) > 20 && command[17] == 3;
	send(session, diagnostics_session_reply, sizeof(diagnostics_session_reply), 0);
	stop = accept(server->fd, NULL, NULL);
	good = good && recv(stop, command, sizeof(command), 0) == 28 && command[17] == 1 &&
	       command[20] == 7;
	if (good)
		send(session, stream, sizeof(stream) - 1, 0);
	close(session);
	send(stop, diagnostics_session_reply, sizeof(diagnostics_session_reply), 0);
	close(stop);
}

Test(rundown, begins_a_session_with_an_older_command_and_stops_it_at_once)
{
	struct diagnostics_server server;
	struct rundown rundown;
	pid_t child;

	diagnostics_server_begin(&server, 4711);
	child = fork();
	if (!child) {
		play_runtime(&server);
		_exit(0);
	}
	/* The listener is this process: the child only inherited the socket. */
	cr_assert_null(rundown_ask(&server.place, &rundown));
	cr_assert_eq(rundown.method_count, 0);
	rundown_deinit(&rundown);
	waitpid(child, NULL, 0);
	diagnostics_server_end(&server);
}

/* Starts a session, receives the stop command, and sends zeros until the peer closes. */
static void send_without_an_end(struct diagnostics_server *server)
{
	static const char zeros[1 << 16];
	uint8_t command[4096];
	int first = accept(server->fd, NULL, NULL), second;

	recv(first, command, sizeof(command), 0);
	send(first, diagnostics_session_reply, sizeof(diagnostics_session_reply), 0);
	second = accept(server->fd, NULL, NULL);
	recv(second, command, sizeof(command), 0);
	while (send(first, zeros, sizeof(zeros), MSG_NOSIGNAL) > 0)
		continue;
	close(first);
	close(second);
}

Test(rundown, takes_at_most_an_eighth_of_the_memory_from_one_runtime)
{
	struct diagnostics_server server;
	struct rundown rundown;
	struct budget budget;
	pid_t child;

	budget_init(&budget);
	budget.others.most_bytes = 8 << 20;
	diagnostics_server_begin(&server, 4711);
	server.place.account = &budget.others;
	child = fork();
	if (!child) {
		send_without_an_end(&server);
		_exit(0);
	}
	assert_error(rundown_ask(&server.place, &rundown), SYM_ERROR_LIMIT, "");
	/* There was memory left all the time. */
	cr_expect_eq(budget.others.excess, 0);
	cr_expect_eq(budget.others.held_bytes, 0);
	waitpid(child, NULL, 0);
	diagnostics_server_end(&server);
	budget_deinit(&budget);
}

/* It accepts the command and never replies. */
Test(diagnostics_socket, does_not_ask_a_silent_process_again)
{
	struct diagnostics_server server;
	struct sym_error *error;
	struct budget budget;
	struct buf payload;
	uint32_t result = 0;
	int fd = -1, again_fd = -1;

	budget_init(&budget);
	budget.others.timers[BUDGET_WAIT].most_ns = INT64_C(1000000000) * 3600;
	diagnostics_server_begin(&server, 4711);
	server.place.account = &budget.others;
	buf_init(&payload, 100);
	cr_assert_null(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd));
	cr_assert_null(diagnostics_send(fd, 2, 5, "abc", 3, diagnostics_now_ms() + 5000));
	error = diagnostics_receive(&server.place, fd, &payload, &result, diagnostics_now_ms() + 1);
	assert_error(error, SYM_ERROR_IO, "no answer in time");
	error = diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &again_fd);
	assert_error(error, SYM_ERROR_IO, "did not answer before");
	close(fd);
	buf_deinit(&payload);
	diagnostics_server_end(&server);
	budget_deinit(&budget);
}

Test(diagnostics_socket, waits_only_as_long_as_the_budget_allows)
{
	struct diagnostics_server server;
	struct sym_error *error;
	struct budget budget;
	struct buf payload;
	uint32_t result = 0;
	int fd = -1;

	budget_init(&budget);
	budget.others.timers[BUDGET_WAIT].most_ns = 2000000;
	diagnostics_server_begin(&server, 4711);
	buf_init(&payload, 100);
	cr_assert_null(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd));
	server.place.account = &budget.others;
	cr_assert_null(diagnostics_send(fd, 2, 5, "abc", 3, diagnostics_now_ms() + 5000));
	error = diagnostics_receive(&server.place, fd, &payload, &result,
				    diagnostics_now_ms() + 3600 * 1000);
	assert_error(error, SYM_ERROR_IO, "no answer in time");
	cr_expect_eq(budget.others.excess, BUDGET_EXCESS_WAIT);
	close(fd);
	budget_deinit(&budget);
	buf_deinit(&payload);
	diagnostics_server_end(&server);
}

/* An endless stream is cut off where the budget ends. */
Test(diagnostics_socket, keeps_only_as_much_of_a_reply_as_the_budget_allows)
{
	struct diagnostics_server server;
	static const char bytes[1 << 16];
	struct budget budget;
	struct buf stream;
	int fd = -1, peer;

	budget_init(&budget);
	budget.others.most_bytes = 1 << 17;
	diagnostics_server_begin(&server, 4711);
	cr_assert_null(diagnostics_connect(&server.place, diagnostics_now_ms() + 5000, &fd));
	peer = accept(server.fd, NULL, NULL);
	buf_init(&stream, 1 << 30);
	buf_charge(&stream, &budget.others);
	for (int i = 0; i < 3; i++) {
		cr_assert_eq(send(peer, bytes, sizeof(bytes), 0), (ssize_t)sizeof(bytes));
		if (!stream.failure)
			sym_error_destroy(diagnostics_drain(&server.place, fd, &stream, 1,
							    diagnostics_now_ms() + 1));
	}
	cr_expect_eq(stream.failure, BUF_TOO_BIG);
	cr_expect_leq(stream.capacity_bytes, budget.others.most_bytes);
	cr_expect_eq(budget.others.excess, BUDGET_EXCESS_MEMORY);
	buf_deinit(&stream);
	cr_expect_eq(budget.others.held_bytes, 0);
	close(peer);
	close(fd);
	diagnostics_server_end(&server);
	budget_deinit(&budget);
}
