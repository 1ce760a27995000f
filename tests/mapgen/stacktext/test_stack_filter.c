/* SPDX-License-Identifier: MIT */
/* The stream of lines: in pieces, without an end, or with lines that are too long. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/alloc_fail.h"
#include "tests/support/stack_text_run.h"

static struct stack_text_run run;

static void tear_down(void)
{
	stack_text_run_deinit(&run);
}

TestSuite(stack_filter, .fini = tear_down);

static void expect_same(const char *text, size_t size_bytes)
{
	cr_assert_not(run.failed);
	cr_assert_eq(run.output.size_bytes, size_bytes);
	cr_expect(!memcmp(run.output.data, text, size_bytes));
}

Test(stack_filter, writes_nothing_for_nothing)
{
	stack_text_run(&run, "", 0);
	cr_expect_not(run.failed);
	cr_expect_eq(run.output.size_bytes, 0);
}

Test(stack_filter, writes_a_last_line_without_newline)
{
	stack_text_run(&run, "a\n0x7fa5a10a3016", 16);
	cr_expect_str_eq(buf_string(&run.output), "a\nA.B::C(int32)+0x16");
}

Test(stack_filter, keeps_bytes_that_are_no_text)
{
	static const char text[] =
		"\0\0\xff\xfe\n\0x7fa5a10a3016\n\x80 [unknown]\n\n\r\n\t\n \xc3\x28;\n";

	for (run.piece_bytes = 0; run.piece_bytes < 8; run.piece_bytes++) {
		buf_clear(&run.output);
		stack_text_run(&run, text, sizeof(text));
		expect_same(text, sizeof(text));
	}
}

static const char address[] = ";0x7fa5a10a3016", next_line[] = "0x7fa5a10a3016\n";

/* A line of `size_bytes` with addresses in it, and a line after it. */
static char *folded_line(size_t size_bytes)
{
	struct buf text;

	buf_init(&text, size_bytes + sizeof(next_line));
	buf_append_string(&text, "comm");
	while (text.size_bytes + 32 < size_bytes)
		buf_append_string(&text, address);
	buf_append_char(&text, ';');
	while (text.size_bytes + 3 < size_bytes)
		buf_append_char(&text, 'x');
	buf_append_string(&text, " 1\n");
	buf_append_string(&text, next_line);
	return buf_steal(&text, NULL);
}

Test(stack_filter, names_frames_of_a_line_of_many)
{
	const size_t size_bytes = 1 << 19;
	char *text = folded_line(size_bytes);
	size_t names = 0;

	run.piece_bytes = 4093;
	stack_text_run(&run, text, strlen(text));
	cr_assert_not(run.failed);
	buf_append_char(&run.output, '\0');
	for (const char *at = run.output.data; (at = strstr(at, "A.B::C(int32)")); at++)
		names++;
	cr_expect_eq(names, (size_bytes - 32 - 4) / (sizeof(address) - 1) + 1 + 1);
	cr_expect_null(strstr(run.output.data, "0x7fa5"));
	free(text);
}

Test(stack_filter, hands_a_line_that_is_too_long_on_and_names_the_next)
{
	const size_t size_bytes = 3 * STACK_LONGEST_LINE_BYTES + 17;
	char *text = folded_line(size_bytes);

	for (run.piece_bytes = 0; run.piece_bytes < 100000; run.piece_bytes += 65536 + 1) {
		buf_clear(&run.output);
		stack_text_run(&run, text, strlen(text));
		cr_assert_not(run.failed);
		cr_assert_eq(run.output.size_bytes, size_bytes + strlen("A.B::C(int32)+0x16\n"));
		cr_expect(!memcmp(run.output.data, text, size_bytes));
		cr_expect(!memcmp(run.output.data + size_bytes, "A.B::C(int32)+0x16\n", 19));
	}
	free(text);
}

Test(stack_filter, does_not_wait_forever_for_the_owner_of_a_stack)
{
	static const char frame[] = "  7fa5a0e3123f     [unknown]\n";
	const size_t frames = 3 * STACK_LONGEST_LINE_BYTES / (sizeof(frame) - 1);
	struct buf text;

	buf_init(&text, 1 << 24);
	for (size_t i = 0; i < frames; i++)
		buf_append(&text, frame, sizeof(frame) - 1);
	buf_append_string(&text, "    b'x' [27737]\n\n");
	run.no_default = run.no_names = true;
	stack_text_run(&run, text.data, text.size_bytes);
	expect_same(text.data, text.size_bytes);
	buf_deinit(&text);
}

/* ---- what is live ------------------------------------------------------------ */

struct sink {
	struct buf output;
	bool broken;
};

static bool take(void *context, const void *bytes, size_t size_bytes)
{
	struct sink *sink = context;

	return !sink->broken && buf_append(&sink->output, bytes, size_bytes);
}

static bool name_all(void *context, struct stack_owner owner, const struct stack_query *queries,
		     size_t count, struct stack_name *names)
{
	struct sink *sink = context;

	(void)owner;
	(void)queries;
	for (size_t i = 0; i < count; i++)
		names[i] = (struct stack_name){ .name = "f", .path = "", .offset_bytes = 1 };
	return !sink->broken;
}

static bool push(struct stack_filter *filter, const char *text)
{
	size_t room_bytes;
	char *room = stack_filter_room(filter, &room_bytes);

	memcpy(room, text, strlen(text));
	return stack_filter_push(filter, strlen(text));
}

Test(stack_filter, writes_each_line_as_soon_as_it_is_whole)
{
	struct sink sink = { 0 };
	struct stack_filter_client client = {
		.resolve = name_all, .write = take, .context = &sink, .has_default = true
	};
	struct stack_filter *filter = stack_filter_create(&client);

	buf_init(&sink.output, 1000);
	cr_assert(push(filter, "0x7fa5a10a3016\n  7fa5a0e3123f   [unkn"));
	cr_expect_str_eq(buf_string(&sink.output), "f+0x1\n");
	cr_assert(push(filter, "own]\n"));
	cr_expect_str_eq(buf_string(&sink.output), "f+0x1\n  7fa5a0e3123f   f\n");
	stack_filter_destroy(filter);
	buf_deinit(&sink.output);
}

Test(stack_filter, holds_a_stack_back_until_it_is_known_whose_it_is)
{
	struct sink sink = { 0 };
	struct stack_filter_client client = { .resolve = name_all,
					      .write = take,
					      .context = &sink };
	struct stack_filter *filter = stack_filter_create(&client);

	buf_init(&sink.output, 1000);
	cr_assert(push(filter, "x\n  7fa5a0e3123f   [unknown]\n"));
	cr_expect_str_eq(buf_string(&sink.output), "x\n");
	cr_assert(push(filter, "    b'x' [1]\n"));
	cr_expect_str_eq(buf_string(&sink.output), "x\n  7fa5a0e3123f   f\n    b'x' [1]\n");
	stack_filter_destroy(filter);
	buf_deinit(&sink.output);
}

static bool name_ownerless(void *context, struct stack_owner owner,
			   const struct stack_query *queries, size_t count,
			   struct stack_name *names)
{
	return owner.kind != STACK_OWNER_NONE || name_all(context, owner, queries, count, names);
}

Test(stack_filter, begins_anew_after_the_end_of_a_stream)
{
	struct sink sink = { 0 };
	struct stack_filter_client client = { .resolve = name_ownerless,
					      .write = take,
					      .context = &sink };
	struct stack_filter *filter = stack_filter_create(&client);

	buf_init(&sink.output, 1000);
	cr_assert(push(filter, "PID 1 - process\n#0  0x00007fa5a10a3016"));
	cr_assert(stack_filter_finish(filter));
	cr_assert(push(filter, "\n#0  0x00007fa5a10a3016\n"));
	cr_assert(stack_filter_finish(filter));
	cr_expect_str_eq(buf_string(&sink.output), "PID 1 - process\n#0  0x00007fa5a10a3016"
						   "\n#0  0x00007fa5a10a3016 f\n");
	stack_filter_destroy(filter);
	buf_deinit(&sink.output);
}

Test(stack_filter, ends_when_the_client_fails)
{
	struct sink sink = { .broken = true };
	struct stack_filter_client client = { .resolve = name_all,
					      .write = take,
					      .context = &sink };
	struct stack_filter *filter = stack_filter_create(&client);

	cr_expect_not(push(filter, "0x7fa5a10a3016\n"));
	stack_filter_destroy(filter);
	filter = stack_filter_create(&client);
	cr_expect_not(push(filter, "text\n"));
	stack_filter_destroy(filter);
}

static bool fail_for_process_2(void *context, struct stack_owner owner,
			       const struct stack_query *queries, size_t count,
			       struct stack_name *names)
{
	return owner.id != 2 && name_all(context, owner, queries, count, names);
}

Test(stack_filter, writes_what_came_before_a_failure)
{
	struct sink sink = { 0 };
	struct stack_filter_client client = { .resolve = fail_for_process_2,
					      .write = take,
					      .context = &sink };
	struct stack_filter *filter = stack_filter_create(&client);

	buf_init(&sink.output, 1000);
	cr_expect_not(push(filter, "PID 1 - process\n#0  0x00007fa5a10a3016\nPID 2 - process\n"
				   "#0  0x00007fa5a10a3016\n"));
	cr_expect_str_eq(buf_string(&sink.output), "PID 1 - process\n#0  0x00007fa5a10a3016 f\n"
						   "PID 2 - process\n");
	stack_filter_destroy(filter);
	buf_deinit(&sink.output);
}

static bool run_whole(void *context)
{
	const struct buf *text = context;
	struct stack_text_run again = { .piece_bytes = 1000 };
	bool done;

	stack_text_run(&again, text->data, text->size_bytes);
	done = !again.failed;
	stack_text_run_deinit(&again);
	return done;
}

Test(stack_filter, says_that_memory_is_short)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	for (int i = 0; i < 3000; i++)
		buf_append_string(&text, "0x7fa5a10a3016\n");
	cr_expect_gt(alloc_fail_each(run_whole, &text), 5);
	buf_deinit(&text);
}
