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
#include "symsrv/resolve/known_answers.h"
#include "symsrv/resolve/map_processes.h"
#include "symsrv/resolve/resolve_answer.h"
#include "symsrv/resolve/symbol_answer.h"
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
	const struct symbol_question question = {
		.identity = "one",
		.name = "one",
		.fd = STDIN_FILENO,
		.positions = positions,
		.count = 2,
		.deadline_ms = clock_now_ms() + 60000,
		.find = find_nothing,
	};
	struct symbol_worker_counts counts;
	struct buf text;
	struct answer_list list = { .text = &text, .most_bytes = 1000 };

	buf_init(&text, 1000);
	cr_assert_not_null(symbol_workers_ask(workers, &question, &list));
	cr_assert_not_null(strstr(symbol_workers_ask(workers, &question, &list), "failed"));
	cr_assert_eq(list.count + text.size_bytes, 0);
	symbol_workers_counts(workers, &counts);
	cr_assert_eq(counts.questions, 1);
	cr_assert_eq(counts.crashed + counts.refused, 1);
	cr_assert_eq(counts.running, 0);
	symbol_workers_destroy(workers);
	buf_deinit(&text);
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
	struct buf buf;

	buf_init(&buf, 1000);
	cr_assert(resolve_answer_write(&buf, &answer));
	cr_assert_str_eq(buf_string(&buf),
			 "{\"function\":\"outer\",\"offset\":9,\"file\":\"outer.c\",\"line\":3,"
			 "\"inlines\":[{\"function\":\"inner\",\"file\":\"inner.c\",\"line\":1},"
			 "{\"function\":\"middle\",\"file\":\"middle.c\",\"line\":2}]}");
	buf_deinit(&buf);
}

/* The JSON of a name, as a reader of JSON takes it. */
static char *name_read_back(const char *name)
{
	const struct sym_answer answer = { .status = SYM_RESOLVED, .name = name };
	struct buf buf;
	json_t *json;
	char *ret;

	buf_init(&buf, 1000);
	cr_assert(resolve_answer_write(&buf, &answer));
	json = json_loadb(buf.data, buf.size_bytes, 0, NULL);
	cr_assert_not_null(json, "%s", buf_string(&buf));
	ret = strdup(json_string_value(json_object_get(json, "function")));
	json_decref(json);
	buf_deinit(&buf);
	return ret;
}

Test(resolve_answer, keeps_every_character_of_a_name)
{
	char every[128] = { 0 };
	char *name AUTO_FREE = NULL, *accents AUTO_FREE = NULL;

	for (size_t i = 0; i < 127; i++)
		every[i] = (char)(i + 1);
	name = name_read_back(every);
	cr_assert_str_eq(name, every);
	accents = name_read_back("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\\");
	cr_assert_str_eq(accents, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\\");
}

Test(resolve_answer, is_null_without_a_name_and_keeps_no_bytes_that_are_no_text)
{
	const struct sym_answer nothing = { .status = SYM_NO_MATCH, .name = "no" };
	char *high AUTO_FREE = name_read_back("a\xff"),
		   *half AUTO_FREE = name_read_back("\xc3\xa9\xc3");
	struct buf buf;

	buf_init(&buf, 1000);
	cr_assert(resolve_answer_write(&buf, &nothing));
	cr_assert_str_eq(buf_string(&buf), "null");
	buf_deinit(&buf);
	cr_assert_str_eq(high, "a?");
	cr_assert_str_eq(half, "???");
}

Test(resolve_answer, is_taken_back_when_there_is_no_room)
{
	const struct sym_answer answer = { .status = SYM_RESOLVED, .name = "name" };
	struct buf buf;

	buf_init(&buf, 35);
	cr_assert(resolve_answer_write(&buf, &answer));
	cr_assert_not(resolve_answer_write(&buf, &answer));
	cr_assert_str_eq(buf_string(&buf), "{\"function\":\"name\",\"offset\":0}");
	buf_deinit(&buf);
}

static const struct sym_inlined sent_inlined[] = {
	{ .name = "in", .call_file = "b.c", .call_line = 2 }, { .name = "", .linkage_name = "_Z" }
};
static const struct sym_answer sent = {
	.status = SYM_RESOLVED,
	.name = "out",
	.linkage_name = "_Zout",
	.offset_bytes = UINT64_C(1) << 40,
	.file = "a.c",
	.line = 7,
	.line_quality = SYM_LINE_NEAREST,
	.inlined = sent_inlined,
	.inlined_count = 2,
};

Test(symbol_answer, comes_as_it_was_sent)
{
	struct sym_inlined inlined[SYMBOL_ANSWER_INLINED];
	struct buf bytes, before, after;
	struct sym_answer came;
	struct reader reader;

	buf_init(&bytes, 1000);
	buf_init(&before, 1000);
	buf_init(&after, 1000);
	symbol_answer_write(&bytes, &sent);
	symbol_answer_write(&bytes, NULL);
	reader = reader_over(bytes.data, bytes.size_bytes);
	cr_assert(symbol_answer_read(&reader, inlined, &came));
	cr_assert(resolve_answer_write(&before, &sent));
	cr_assert(resolve_answer_write(&after, &came));
	cr_assert_str_eq(buf_string(&after), buf_string(&before));
	cr_assert(symbol_answer_read(&reader, inlined, &came));
	cr_assert_null(came.name);
	cr_assert_eq(reader_left(&reader), 0);
	buf_deinit(&bytes);
	buf_deinit(&before);
	buf_deinit(&after);
}

/* Each cut is in memory of its own, so that a sanitizer sees reads beyond it. */
Test(symbol_answer, that_is_cut_or_damaged_is_refused_or_read)
{
	struct sym_inlined inlined[SYMBOL_ANSWER_INLINED];
	struct sym_answer came;
	struct buf bytes;

	buf_init(&bytes, 1000);
	symbol_answer_write(&bytes, &sent);
	for (size_t cut = 0; cut < bytes.size_bytes; cut++) {
		char *copy AUTO_FREE = malloc(cut + 1);
		struct reader reader = reader_over(copy, cut);

		memcpy(copy, bytes.data, cut);
		cr_assert_not(symbol_answer_read(&reader, inlined, &came), "%zu", cut);
	}
	for (size_t i = 0; i < bytes.size_bytes; i++)
		for (unsigned int value = 0; value < 256; value += 5) {
			char *copy AUTO_FREE = malloc(bytes.size_bytes);
			struct reader reader = reader_over(copy, bytes.size_bytes);
			struct buf text;

			memcpy(copy, bytes.data, bytes.size_bytes);
			copy[i] = (char)value;
			buf_init(&text, 10000);
			if (symbol_answer_read(&reader, inlined, &came))
				cr_assert(resolve_answer_write(&text, &came));
			buf_deinit(&text);
		}
	buf_deinit(&bytes);
}

Test(known_answers, are_found_by_position)
{
	struct known_answers known = { 0 };
	struct sym_answer answer = { .status = SYM_RESOLVED, .name = "name" };
	size_t bytes;

	cr_assert_null(known_answers_find(&known, 0, &bytes));
	for (uint64_t i = 0; i < KNOWN_ANSWERS_MOST; i++) {
		answer.offset_bytes = i;
		cr_assert(known_answers_add(&known, i * 4096, &answer));
	}
	cr_assert_not(known_answers_add(&known, 1, &answer));
	for (uint64_t i = 0; i < KNOWN_ANSWERS_MOST; i += 7777) {
		char text[64];
		const char *found = known_answers_find(&known, i * 4096, &bytes);

		snprintf(text, sizeof(text), "{\"function\":\"name\",\"offset\":%llu}",
			 (unsigned long long)i);
		cr_assert_eq(bytes, strlen(text));
		cr_assert_arr_eq(found, text, bytes);
	}
	cr_assert_null(known_answers_find(&known, 1, &bytes));
	known_answers_forget(&known);
	cr_assert_null(known_answers_find(&known, 0, &bytes));
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
