/* SPDX-License-Identifier: MIT */
/* Lines that a traced program printed to look like other lines, and lines of random pieces of all
 * forms. stack_text_run.h makes the names. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/support/stack_text_run.h"

static void expect_text(const char *in, const char *out)
{
	struct stack_text_run run = { 0 };

	stack_text_run(&run, in, strlen(in));
	cr_expect_not(run.failed);
	cr_expect_str_eq(buf_string(&run.output), out);
	stack_text_run_deinit(&run);
}

static void expect_untouched(const char *text)
{
	expect_text(text, text);
}

/* A traced program may print anything. */
Test(stack_hostile, leaves_texts_of_babeltrace_that_look_like_fields)
{
	expect_untouched(
		"[1] h e: { cpu_id = 1 }, { vpid = 99 }, { s = \"x, callstack_user = [ [ ip "
		"= 0x7FA5A10A3016,] = 0x7FA5A10A4016 ] }\" }\n");
	expect_untouched("[1] h e: { vpid = 9, s = \"\\\", ip = 0x7FA5A10A3016 }\" }\n"
			 "[1] h e: { vpid = 9, s = \"ip = 0x7FA5A10A3016\n");
	expect_text("[1] h e: { vpid = 9, s = \"ip = 0x1000\", ip = 0x7FA5A10A3016 }\n",
		    "[1] h e: { vpid = 9, s = \"ip = 0x1000\", ip = 0x7FA5A10A3016 "
		    "\"A.B::C(int32)+0x16\" }\n");
}

Test(stack_hostile, reads_no_field_of_babeltrace_inside_of_another)
{
	/* "[ip = 0x...,]" is not an index, so this is not an array. */
	expect_text("[1] h e: { vpid = 99, callstack_user = [ [ ip = 0x7FA5A10A3016,] = "
		    "0x7FA5A10A4016 ] }\n",
		    "[1] h e: { vpid = 99, callstack_user = [ [ ip = 0x7FA5A10A3016 "
		    "\"A.B::C(int32)+0x16\",] = 0x7FA5A10A4016 ] }\n");
	expect_text(
		"[1] h e: { callstack_user = [ [0] = 0x7FA5A10A3016, [1] = ip = 0x7FA5A10A4016 "
		"] }\n",
		"[1] h e: { callstack_user = [ [0] = 0x7FA5A10A3016 \"A.B::C(int32)+0x16\", [1] "
		"= ip = 0x7FA5A10A4016 ] }\n");
}

/* ---- any line ------------------------------------------------------------------------ */

static const char *const pieces[] = {
	" ",
	" ",
	"  ",
	"\t",
	",",
	"(",
	")",
	"[",
	"]",
	"{ ",
	" }",
	"\"",
	"\\n",
	";",
	":",
	"0x",
	"7fa5a10a3016",
	"0x7fa5a10a3016",
	"[unknown]",
	"([unknown])",
	"(/x)",
	"> /x(",
	") [0x1f]",
	"ip = ",
	"addr = ",
	"call_site = ",
	"callstack_user = ",
	"[ [0]",
	"] = ",
	" - 1",
	"#1 ",
	"frame #1: ",
	"in ?? (",
	"@[",
	"]:",
	"12",
	"12/13",
	"1.234567:",
	"x:y:",
	"Thread 0x7f61a8dff6c0 (LWP 6183) ",
	"{\"type\":",
	"cyg_profile",
	"0.1 ( 0.040 ms): c/2 ",
	"* ",
	"PID TID COMM",
};

/* A frame begins behind the end of the one before it. */
static void check_place(void *context, const struct stack_frame *frame)
{
	size_t *end = context;

	cr_assert_geq(frame->start, *end);
	cr_assert_leq(frame->start, frame->end);
	cr_assert(!frame->fill_image || frame->image_start >= frame->end);
	*end = frame->fill_image ? frame->image_end : frame->end;
}

Test(stack_hostile, reports_frames_of_any_line_in_order)
{
	const size_t count = sizeof(pieces) / sizeof(*pieces), lines = 200000;
	unsigned int seed = 42;
	struct stack_text text;
	size_t end;
	char line[1024];

	stack_text_init(&text, check_place, &end);
	for (size_t i = 0; i < lines; i++) {
		size_t size_bytes = 0;

		for (int left = rand_r(&seed) % 16; left >= 0; left--)
			size_bytes += (size_t)snprintf(line + size_bytes, sizeof(line) - size_bytes,
						       "%s", pieces[(size_t)rand_r(&seed) % count]);
		end = 0;
		stack_text_line(&text, line, size_bytes);
		cr_assert_leq(end, size_bytes, "%s", line);
	}
}
