/* SPDX-License-Identifier: MIT */
/* Source lines in the text of each tool: where the tool itself would print them. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/stack_text_run.h"

static struct stack_text_run run;

static void set_up(void)
{
	run.lines = true;
}

static void tear_down(void)
{
	stack_text_run_deinit(&run);
}

TestSuite(stack_source, .init = set_up, .fini = tear_down);

/* In all pieces: a line that is held back must not get lost. */
static void expect_text(const char *text, const char *expected)
{
	for (run.piece_bytes = 0; run.piece_bytes < 40; run.piece_bytes += 13) {
		if (run.output.max_bytes)
			buf_clear(&run.output);
		stack_text_run(&run, text, strlen(text));
		cr_assert_not(run.failed);
		cr_expect_str_eq(buf_string(&run.output), expected, "in pieces of %zu: %s",
				 run.piece_bytes, buf_string(&run.output));
	}
}

Test(stack_source, stands_below_a_frame_of_perf_script)
{
	expect_text("w 1 1.000001: x: \n\t    7f0000001010 [unknown] (/lib/a)\n"
		    "\t    7f0000001410 [unknown] (/memfd:x (deleted))\n\n",
		    "w 1 1.000001: x: \n\t    7f0000001010 A.B::C(int32)+0x10 (/lib/a)\n"
		    "  Store.cs:88\n"
		    "\t    7f0000001410 A.B::C(int32)+0x410 (/memfd:x (deleted))\n"
		    "  Store.cs:~90\n\n");
}

Test(stack_source, is_added_where_perf_script_has_the_name)
{
	expect_text("w 1 1.000001: x: \n\t    7f0000001010 main+0x10 (/lib/a)\n"
		    "\t    7f0000001400 f(int)+0x5 (/tmp/perf-1.map)\n\n",
		    "w 1 1.000001: x: \n\t    7f0000001010 main+0x10 (/lib/a)\n"
		    "  Store.cs:88\n"
		    "\t    7f0000001400 f(int)+0x5 (/tmp/perf-1.map)\n"
		    "  Store.cs:88\n\n");
}

Test(stack_source, stays_as_perf_script_has_it)
{
	expect_text("\t    7f0000001010 main+0x10 (/lib/a)\n  main.c:12\n"
		    "\t    7f0000001010 [unknown] (/lib/a)\n  main.c:13\n\n",
		    "\t    7f0000001010 main+0x10 (/lib/a)\n  main.c:12\n"
		    "\t    7f0000001010 A.B::C(int32)+0x10 (/lib/a)\n  main.c:13\n\n");
}

Test(stack_source, replaces_what_perf_script_prints_without_one)
{
	expect_text("\t    7f0000001010 [unknown] (/lib/a)\n  a[1010]\n"
		    "\t    7f0000001900 [unknown] (/lib/a)\n  a[1900]\n\n",
		    "\t    7f0000001010 A.B::C(int32)+0x10 (/lib/a)\n  Store.cs:88\n"
		    "\t    7f0000001900 [unknown] (/lib/a)\n  a[1900]\n\n");
}

Test(stack_source, stands_below_a_sample_without_callers)
{
	expect_text("w 12 7.577174: cpu-clock:      7fa523b52010 [unknown] (/lib/a)\nb\n",
		    "w 12 7.577174: cpu-clock:      7fa523b52010 A.B::C(int32)+0x10 (/lib/a)\n"
		    "  Store.cs:88\nb\n");
}

Test(stack_source, leaves_its_own_output_as_it_is)
{
	expect_text("\t    7f0000001010 A.B::C(int32)+0x10 (/lib/a)\n  Store.cs:88\n"
		    "\t    7f0000001410 A.B::C(int32)+0x410 (/lib/a)\n  Store.cs:~90\n\n",
		    "\t    7f0000001010 A.B::C(int32)+0x10 (/lib/a)\n  Store.cs:88\n"
		    "\t    7f0000001410 A.B::C(int32)+0x410 (/lib/a)\n  Store.cs:~90\n\n");
}

Test(stack_source, stands_behind_the_name_in_bpftrace)
{
	expect_text("@[\n    0x7f0000001010\n    0x7f0000001410\n]: 3\n",
		    "@[\n    A.B::C(int32)+16@Store.cs:88\n    A.B::C(int32)+1040@Store.cs:~90\n"
		    "]: 3\n");
	expect_text("{\"type\": \"map\", \"data\": {\"@\": {\"\\n    0x7f0000001010\\n\": 1}}}\n",
		    "{\"type\": \"map\", \"data\": {\"@\": {\"\\n    "
		    "A.B::C(int32)+16@Store.cs:88\\n\": 1}}}\n");
}

Test(stack_source, stands_behind_the_name_in_bcc_and_folded_lines)
{
	expect_text("  7f0000001010     [unknown]\n", "  7f0000001010     "
						      "A.B::C(int32)@Store.cs:88\n");
	expect_text("w;0x7f0000001010;main 3\n", "w;A.B::C(int32)@Store.cs:88;main 3\n");
}

Test(stack_source, stands_at_the_end_of_the_line_in_gdb_and_lldb)
{
	expect_text("#1  0x00007f0000001010 in ?? () from /lib/a\n"
		    "#2  0x00007f0000001010 in f (x=1) from /lib/a\n"
		    "#3  0x00007f0000001010 in g (x=1) at g.c:3\n",
		    "#1  0x00007f0000001010 in A.B::C(int32) () from /lib/a at Store.cs:88\n"
		    "#2  0x00007f0000001010 in f (x=1) from /lib/a at Store.cs:88\n"
		    "#3  0x00007f0000001010 in g (x=1) at g.c:3\n");
	expect_text("    frame #2: 0x00007f0000001010\n",
		    "    frame #2: 0x00007f0000001010 A.B::C(int32) + 16 at Store.cs:88\n");
}

Test(stack_source, stands_below_a_frame_of_eu_stack)
{
	expect_text("PID 1 - process\nTID 1:\n#0  0x00007f0000001010\n"
		    "#1  0x00007f0000001410 - 1 main\n",
		    "PID 1 - process\nTID 1:\n#0  0x00007f0000001010 A.B::C(int32)\n"
		    "    Store.cs:88\n"
		    "#1  0x00007f0000001410 - 1 main\n    Store.cs:~90\n");
}

Test(stack_source, keeps_the_end_of_a_line_of_windows)
{
	expect_text("\t    7f0000001010 [unknown] (/lib/a)\r\n\r\n",
		    "\t    7f0000001010 A.B::C(int32)+0x10 (/lib/a)\n  Store.cs:88\r\n\r\n");
}

/* ---- inlined functions ------------------------------------------------------- */

static const struct stack_inlined two_inlined[] = {
	{ "A.B::In(int32)", { "/src/In.cs", 5, true } },
	{ "A.B::Mid;x", { NULL, 0, false } },
};

static void inline_two(void)
{
	run.lines = true;
	run.inlined = two_inlined;
	run.inlined_count = 2;
}

static void tear_down_inlined(void)
{
	stack_text_run_deinit(&run);
	run.inlined = NULL;
	run.inlined_count = 0;
}

TestSuite(stack_inlined, .init = inline_two, .fini = tear_down_inlined);

Test(stack_inlined, stand_above_their_frame_in_perf_script)
{
	expect_text("w 1 1.000001: x: \n\t    7f0000001010 [unknown] (/lib/a)\n"
		    "\t    7f0000001900 main+0x10 (/lib/a)\n\n",
		    "w 1 1.000001: x: \n\t    7f0000001010 A.B::In(int32) (inlined)\n"
		    "  In.cs:~5\n"
		    "\t    7f0000001010 A.B::Mid;x (inlined)\n"
		    "\t    7f0000001010 A.B::C(int32)+0x10 (/lib/a)\n"
		    "  Store.cs:88\n"
		    "\t    7f0000001900 main+0x10 (/lib/a)\n\n");
	expect_text("\t    7f0000001010 f(int)+0x5 (/tmp/perf-1.map)\n\n",
		    "\t    7f0000001010 A.B::In(int32) (inlined)\n  In.cs:~5\n"
		    "\t    7f0000001010 A.B::Mid;x (inlined)\n"
		    "\t    7f0000001010 f(int)+0x5 (/tmp/perf-1.map)\n  Store.cs:88\n\n");
}

Test(stack_inlined, are_not_added_where_the_text_has_them)
{
	const char *text = "\t    7f0000001010 A.B::In(int32) (inlined)\n  In.cs:~5\n"
			   "\t    7f0000001010 A.B::C(int32)+0x10 (/lib/a)\n  Store.cs:88\n\n";

	expect_text(text, text);
	/* The next frame may have the same address. */
	expect_text("\t    7f0000001010 In (inlined)\n\t    7f0000001010 f (/lib/a)\n"
		    "\t    7f0000001010 f (/lib/a)\n\n",
		    "\t    7f0000001010 In (inlined)\n\t    7f0000001010 f (/lib/a)\n"
		    "  Store.cs:88\n"
		    "\t    7f0000001010 A.B::In(int32) (inlined)\n  In.cs:~5\n"
		    "\t    7f0000001010 A.B::Mid;x (inlined)\n"
		    "\t    7f0000001010 f (/lib/a)\n  Store.cs:88\n\n");
}

/* The last of the lines for one address is the frame. */
Test(stack_inlined, make_no_caller_of_their_frame)
{
	const char *text = "\t    7f0000001010 In (inlined)\n\t    7f0000001010 f (/lib/a)\n";

	stack_text_run(&run, text, strlen(text));
	cr_expect_str_eq(buf_string(&run.queries), "7f0000001010 /lib/a\n");
}

Test(stack_inlined, repeat_the_line_of_other_tools)
{
	expect_text("@[\n    0x7f0000001010\n]: 3\n",
		    "@[\n    A.B::In(int32) (inlined)@In.cs:~5\n    A.B::Mid;x (inlined)\n"
		    "    A.B::C(int32)+16@Store.cs:88\n]: 3\n");
	expect_text("  7f0000001010     [unknown]\n",
		    "  7f0000001010     A.B::In(int32) (inlined)@In.cs:~5\n"
		    "  7f0000001010     A.B::Mid;x (inlined)\n"
		    "  7f0000001010     A.B::C(int32)@Store.cs:88\n");
	expect_text(
		"#1  0x00007f0000001010 in ?? () from /lib/a\n",
		"#1  0x00007f0000001010 in A.B::In(int32) (inlined) () from /lib/a at In.cs:~5\n"
		"#1  0x00007f0000001010 in A.B::Mid;x (inlined) () from /lib/a\n"
		"#1  0x00007f0000001010 in A.B::C(int32) () from /lib/a at Store.cs:88\n");
	expect_text("#1  0x00007f0000001010 in f (x=1) from /lib/a\n",
		    "#1  0x00007f0000001010 in A.B::In(int32) (inlined) at In.cs:~5\n"
		    "#1  0x00007f0000001010 in A.B::Mid;x (inlined)\n"
		    "#1  0x00007f0000001010 in f (x=1) from /lib/a at Store.cs:88\n");
	expect_text("PID 1 - process\nTID 1:\n#0  0x00007f0000001010\n",
		    "PID 1 - process\nTID 1:\n#0  0x00007f0000001010 A.B::In(int32) (inlined)\n"
		    "    In.cs:~5\n#0  0x00007f0000001010 A.B::Mid;x (inlined)\n"
		    "#0  0x00007f0000001010 A.B::C(int32)\n    Store.cs:88\n");
}

Test(stack_inlined, stand_behind_their_frame_in_folded_lines)
{
	expect_text("w;0x7f0000001010;main 3\n", "w;A.B::C(int32)@Store.cs:88;A.B::Mid:x (inlined);"
						 "A.B::In(int32) (inlined)@In.cs:~5;main 3\n");
}

Test(stack_inlined, are_left_out_where_one_line_has_several_frames)
{
	expect_text("0x7f0000001010 0x7f0000001020\n",
		    "A.B::C(int32)+0x10@Store.cs:88 A.B::C(int32)+0x20@Store.cs:88\n");
	expect_text("w 12 7.577174: cpu-clock:      7fa523b52010 [unknown] (/lib/a)\nb\n",
		    "w 12 7.577174: cpu-clock:      7fa523b52010 A.B::C(int32)+0x10 (/lib/a)\n"
		    "  Store.cs:88\nb\n");
}

/* ---- without lines ------------------------------------------------------------ */

Test(stack_source, is_not_there_unless_it_is_wanted)
{
	run.lines = false;
	expect_text("\t    7f0000001010 [unknown] (/lib/a)\n\t    7f0000001010 main+0x1 (/lib/a)\n",
		    "\t    7f0000001010 A.B::C(int32)+0x10 (/lib/a)\n"
		    "\t    7f0000001010 main+0x1 (/lib/a)\n");
}
