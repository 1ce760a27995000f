/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/clr/diagnostics/rundown_follow.h"
#include "tests/support/diagnostics_server.h"
#include "tests/support/nettrace_builder.h"

enum {
	PIECE_EVENTS = 20,
	NAME_BYTES = 500 /* of a method's owner; each is two in an event */
};

/* A runtime with an open session, and what it sends. */
struct telling {
	struct diagnostics_server server;
	int fd; /* its end of the session */
	struct nettrace_builder builder;
	size_t told_bytes; /* of the builder's content */
	size_t methods;
	struct rundown_follow *follow;
};

static void *accept_session(void *context)
{
	struct telling *telling = context;
	char command[4096];

	telling->fd = accept(telling->server.fd, NULL, NULL);
	cr_assert_gt(recv(telling->fd, command, sizeof(command), 0), 20);
	cr_assert_eq(
		send(telling->fd, diagnostics_session_reply, sizeof(diagnostics_session_reply), 0),
		(ssize_t)sizeof(diagnostics_session_reply));
	return NULL;
}

static void begin(struct telling *telling)
{
	pthread_t thread;

	*telling = (struct telling){ 0 };
	diagnostics_server_begin(&telling->server, 4711);
	pthread_create(&thread, NULL, accept_session, telling);
	cr_assert_null(rundown_follow_open(&telling->server.place, &telling->follow));
	pthread_join(thread, NULL);
	nettrace_builder_init(&telling->builder);
	begin_block(&telling->builder, true);
	put_kind(&telling->builder, 1, "Microsoft-Windows-DotNETRuntime", 143, 2);
	put_kind(&telling->builder, 2, "Microsoft-Windows-DotNETRuntime", 152, 2);
	put_kind(&telling->builder, 3, "Microsoft-Windows-DotNETRuntime", 153, 2);
	end_block(&telling->builder, "MetadataBlock");
}

static void end(struct telling *telling)
{
	rundown_follow_abandon(telling->follow);
	if (telling->fd >= 0)
		close(telling->fd);
	nettrace_builder_deinit(&telling->builder);
	diagnostics_server_end(&telling->server);
}

static void put_method(struct telling *telling)
{
	char owner[NAME_BYTES + 1];
	struct buf payload;

	snprintf(owner, sizeof(owner), "%0*zu", NAME_BYTES, telling->methods);
	buf_init(&payload, 4096);
	put_u64(&payload, 0x1234);
	put_u64(&payload, 7);
	put_u64(&payload, 0x10000 + 16 * telling->methods++);
	put_u32(&payload, 16);
	put_u32(&payload, 0x06000001);
	put_u32(&payload, RUNDOWN_JITTED);
	put_utf16(&payload, owner);
	put_utf16(&payload, "M");
	put_utf16(&payload, "void  ()");
	put_event(&telling->builder, 1, payload.data, payload.size_bytes);
	buf_deinit(&payload);
}

static void put_module(struct telling *telling, uint32_t kind, uint64_t id, const char *path)
{
	struct buf payload;

	buf_init(&payload, 4096);
	put_u64(&payload, id);
	put_u64(&payload, 0x5678);
	put_u64(&payload, 0);
	put_utf16(&payload, path);
	put_event(&telling->builder, kind, payload.data, payload.size_bytes);
	buf_deinit(&payload);
}

/* Sends the current block, which is small enough for the socket's buffer. */
static void send_block(struct telling *telling)
{
	struct buf *stream = &telling->builder.stream;
	size_t bytes;

	end_block(&telling->builder, "EventBlock");
	bytes = stream->size_bytes - telling->told_bytes;
	cr_assert_eq(send(telling->fd, stream->data + telling->told_bytes, bytes, 0),
		     (ssize_t)bytes);
	/* A block begins at a multiple of 4 of the stream. */
	telling->told_bytes = stream->size_bytes % 4;
	buf_truncate(stream, telling->told_bytes);
}

static void tell(struct telling *telling)
{
	begin_block(&telling->builder, true);
	for (int i = 0; i < PIECE_EVENTS; i++)
		put_method(telling);
	send_block(telling);
}

/* Returns whether something may be missing. */
static bool take_all(struct telling *telling)
{
	struct rundown rundown;
	bool has_gap;

	cr_assert_null(rundown_follow_take(telling->follow, &rundown));
	has_gap = rundown.has_gap;
	cr_assert_eq(rundown.method_count, telling->methods);
	cr_expect_eq(rundown.methods[telling->methods - 1].start_address,
		     0x10000 + 16 * (telling->methods - 1));
	rundown_deinit(&rundown);
	telling->methods = 0;
	return has_gap;
}

Test(rundown_follow, returns_what_was_received_in_between)
{
	struct telling telling;

	begin(&telling);
	/* Together more than the buffer: a runtime without a reader waits here. */
	for (int i = 0; i < 150; i++)
		tell(&telling);
	/* Events may arrive as fast as they are received, all at once, as from a full buffer. */
	take_all(&telling);
	tell(&telling);
	take_all(&telling);
	tell(&telling);
	cr_expect(!take_all(&telling));
	end(&telling);
}

/* A runtime that sends much more than is kept, and never waits. False when there is no reader. */
static bool tells(struct telling *telling)
{
	struct buf *stream = &telling->builder.stream;
	size_t bytes;
	bool sent;

	begin_block(&telling->builder, true);
	for (int i = 0; i < PIECE_EVENTS; i++)
		put_method(telling);
	end_block(&telling->builder, "EventBlock");
	bytes = stream->size_bytes - telling->told_bytes;
	sent = send(telling->fd, stream->data + telling->told_bytes, bytes, MSG_NOSIGNAL) ==
	       (ssize_t)bytes;
	telling->told_bytes = stream->size_bytes % 4;
	buf_truncate(stream, telling->told_bytes);
	return sent;
}

Test(rundown_follow, ends_a_session_that_is_not_taken)
{
	struct telling telling;
	struct rundown rundown;
	struct sym_error *error;
	int told = 0;

	begin(&telling);
	for (; tells(&telling); told++)
		cr_assert_lt(told, 10000);
	cr_expect_gt(told, 1000);
	cr_assert_null(rundown_follow_take(telling.follow, &rundown));
	cr_expect_gt(rundown.method_count, (size_t)1000 * PIECE_EVENTS);
	rundown_deinit(&rundown);
	error = rundown_follow_take(telling.follow, &rundown);
	cr_assert_not_null(error);
	cr_expect(strstr(sym_error_message(error), "has ended"), "%s", sym_error_message(error));
	sym_error_destroy(error);
	end(&telling);
}

Test(rundown_follow, returns_events_before_the_end_of_the_session)
{
	struct telling telling;
	struct rundown rundown;
	struct sym_error *error;

	begin(&telling);
	tell(&telling);
	close(telling.fd);
	telling.fd = -1;
	cr_expect(!take_all(&telling));
	error = rundown_follow_take(telling.follow, &rundown);
	cr_assert_not_null(error);
	cr_expect(strstr(sym_error_message(error), "has ended"), "%s", sym_error_message(error));
	sym_error_destroy(error);
	end(&telling);
}

Test(rundown_follow, is_not_ended_by_a_forked_child)
{
	struct telling telling;
	int status;
	pid_t child;

	begin(&telling);
	child = fork();
	if (!child) {
		alarm(20);
		rundown_follow_close(telling.follow);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status), "it waits for a thread that it does not have");
	tell(&telling);
	cr_expect(!take_all(&telling));
	end(&telling);
}

Test(rundown_follow, reports_loaded_and_unloaded_modules)
{
	struct telling telling;
	struct rundown rundown;

	begin(&telling);
	begin_block(&telling.builder, true);
	telling.builder.time = 100;
	put_module(&telling, 2, 7, "/app/plugin.dll");
	telling.builder.time = 200;
	put_module(&telling, 3, 7, "/app/plugin.dll");
	send_block(&telling);
	cr_assert_null(rundown_follow_take(telling.follow, &rundown));
	cr_assert_eq(rundown.module_count, 2);
	for (size_t i = 0; i < 2; i++) {
		cr_expect_eq(rundown.modules[i].id, 7);
		cr_expect_eq(rundown.modules[i].is_gone, i == 1);
		cr_expect_str_eq(rundown.modules[i].path, "/app/plugin.dll");
	}
	cr_expect_lt(rundown.modules[0].time, rundown.modules[1].time);
	rundown_deinit(&rundown);
	end(&telling);
}
