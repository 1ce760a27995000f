/* SPDX-License-Identifier: MIT */
/* Messages to processes without rights, what these may do, and what becomes of bad ones. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "symsrv/resolve/map_processes.h"
#include "symsrv/resolve/resolve_answer.h"
#include "symsrv/resolve/symbol_message.h"
#include "symsrv/resolve/symbol_sandbox.h"
#include "symsrv/resolve/symbol_workers.h"
#include "symsrv/util/clock.h"

static int ends[2];

static void open_ends(void)
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
}

static void close_ends(void)
{
	close(ends[0]);
	close(ends[1]);
}

TestSuite(symbol_message, .init = open_ends, .fini = close_ends);

Test(symbol_message, brings_bytes_and_a_descriptor)
{
	struct symbol_message message AUTO_SYMBOL_MESSAGE;
	struct stat sent, came;

	symbol_message_init(&message, 100);
	cr_assert(symbol_message_send(ends[0], SYMBOL_MESSAGE_FILE, 7, "bytes", 5, ends[0]));
	cr_assert_eq(symbol_message_receive(ends[1], -1, &message), SYMBOL_RECEIVED);
	cr_assert_eq(message.kind, SYMBOL_MESSAGE_FILE);
	cr_assert_eq(message.number, 7);
	cr_assert_eq(message.bytes.size_bytes, 5);
	cr_assert_arr_eq(message.bytes.data, "bytes", 5);
	cr_assert_eq(fstat(ends[0], &sent) | fstat(message.fd, &came), 0);
	cr_assert_eq(sent.st_ino, came.st_ino);
	/* The next one has none. */
	cr_assert(symbol_message_send(ends[0], SYMBOL_MESSAGE_FILE, 0, NULL, 0, -1));
	cr_assert_eq(symbol_message_receive(ends[1], -1, &message), SYMBOL_RECEIVED);
	cr_assert_eq(message.fd, -1);
	cr_assert_eq(message.bytes.size_bytes, 0);
}

Test(symbol_message, is_late_when_nothing_comes)
{
	struct symbol_message message AUTO_SYMBOL_MESSAGE;

	symbol_message_init(&message, 100);
	cr_assert_eq(symbol_message_receive(ends[1], clock_now_ms(), &message), SYMBOL_LATE);
}

Test(symbol_message, that_is_too_large_or_cut_ends_the_talk)
{
	struct symbol_message message AUTO_SYMBOL_MESSAGE;

	symbol_message_init(&message, 4);
	cr_assert(symbol_message_send(ends[0], SYMBOL_MESSAGE_ANSWERS, 0, "bytes", 5, -1));
	cr_assert_eq(symbol_message_receive(ends[1], -1, &message), SYMBOL_ENDED);
	cr_assert_eq(shutdown(ends[0], SHUT_WR), 0);
	cr_assert_eq(recv(ends[1], (char[5]){ 0 }, 5, MSG_WAITALL), 5);
	cr_assert_eq(symbol_message_receive(ends[1], -1, &message), SYMBOL_ENDED);
}

/* The number of the first thing that a process without rights can do all the same; 0: none. */
static int try_all(int readable)
{
	char own[64];

	snprintf(own, sizeof(own), "/proc/self/fd/%d", readable);
	if (!symbol_sandbox_enter(readable))
		return 1;
	if (open(own, O_RDONLY) < 0)
		return 2;
	if (open(own, O_RDWR) >= 0 || open("/tmp/symsrv-sandbox", O_CREAT | O_WRONLY, 0600) >= 0)
		return 3;
	if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || fork() >= 0 || !kill(getpid(), 0))
		return 4;
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	    MAP_FAILED)
		return 5;
#ifndef __SANITIZE_ADDRESS__
	if (malloc(SYMBOL_SANDBOX_MEMORY_BYTES))
		return 6;
#endif
	return symbol_sandbox_allow_request() ? 0 : 7;
}

Test(symbol_sandbox, leaves_nothing_but_reading_and_answering)
{
	int readable AUTO_CLOSE = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	pid_t child = fork();
	int status;

	if (!child)
		_exit(try_all(readable));
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	cr_assert_eq(WEXITSTATUS(status), 0, "what it could do: %d", WEXITSTATUS(status));
}

static int find_nothing(void *context, const json_t *wanted)
{
	(void)context;
	(void)wanted;
	return -1;
}

Test(symbol_workers, do_not_start_again_at_once_what_has_failed)
{
	struct symbol_workers *workers = symbol_workers_create("/bin/true");
	const uint64_t positions[] = { 1, 2 };
	size_t room_bytes = 1000;
	const struct symbol_question question = {
		.identity = "one",
		.name = "one",
		.fd = STDIN_FILENO,
		.positions = positions,
		.count = 2,
		.deadline_ms = clock_now_ms() + 60000,
		.room_bytes = &room_bytes,
		.find = find_nothing,
	};
	struct symbol_worker_counts counts;
	json_t *list = json_array();

	cr_assert_not_null(symbol_workers_ask(workers, &question, list));
	cr_assert_not_null(strstr(symbol_workers_ask(workers, &question, list), "failed"));
	cr_assert_eq(json_array_size(list), 0);
	symbol_workers_counts(workers, &counts);
	cr_assert_eq(counts.questions, 1);
	cr_assert_eq(counts.crashed + counts.refused, 1);
	cr_assert_eq(counts.running, 0);
	symbol_workers_destroy(workers);
	json_decref(list);
}

Test(resolve_answer, gives_each_function_its_own_place)
{
	const struct sym_inlined inlined[] = {
		{ .name = "inner", .call_file = "middle.c", .call_line = 2 },
		{ .name = "middle", .call_file = "outer.c", .call_line = 3 },
	};
	const struct sym_answer answer = {
		.status = SYM_RESOLVED,
		.name = "outer",
		.offset_bytes = 9,
		.file = "inner.c",
		.line = 1,
		.inlined = inlined,
		.inlined_count = 2,
	};
	json_t *json = resolve_answer_json(&answer);
	char *text AUTO_FREE = json_dumps(json, JSON_COMPACT);

	cr_assert_str_eq(text,
			 "{\"function\":\"outer\",\"offset\":9,\"file\":\"outer.c\",\"line\":3,"
			 "\"inlines\":[{\"function\":\"inner\",\"file\":\"inner.c\",\"line\":1},"
			 "{\"function\":\"middle\",\"file\":\"middle.c\",\"line\":2}]}");
	json_decref(json);
}

Test(resolve_answer, is_null_without_a_name_and_keeps_no_bytes_that_are_no_text)
{
	const struct sym_answer nothing = { .status = SYM_NO_MATCH, .name = "no" };
	const struct sym_answer odd = { .status = SYM_RESOLVED, .name = "a\xff" };
	json_t *json = resolve_answer_json(&nothing);

	cr_assert(json_is_null(json));
	json_decref(json);
	json = resolve_answer_json(&odd);
	cr_assert_str_eq(json_string_value(json_object_get(json, "function")), "a?");
	json_decref(json);
}
static int make_with(const char *program, int64_t deadline_ms, struct map_processes *processes)
{
	struct object *image = object_create("pe/00000000-0/a.dll", open("/dev/null", O_RDONLY));
	struct buf text;
	int failure;

	buf_init(&text, 1000);
	map_processes_init(processes, program);
	failure =
		processes->maker.make(&processes->maker, image, SYM_MAP_R2RMAP, deadline_ms, &text);
	object_release(image);
	buf_deinit(&text);
	return failure;
}

Test(map_processes, make_no_map_when_the_process_ends)
{
	struct map_processes processes;
	/* It may end before it is asked: then it is unknown whether there is a map. */
	int failure = make_with("/bin/true", clock_now_ms() + 60000, &processes);

	cr_assert(failure == -EBADMSG || failure == -EAGAIN);
	cr_assert_eq(processes.counts.failed, 1);
	cr_assert_eq(processes.counts.made + processes.counts.unmade, 0);
}

Test(map_processes, leave_it_open_when_no_process_starts)
{
	struct map_processes processes;

	cr_assert_eq(make_with("/nonexistent", clock_now_ms() + 60000, &processes), -EAGAIN);
	cr_assert_eq(processes.counts.failed, 1);
}
