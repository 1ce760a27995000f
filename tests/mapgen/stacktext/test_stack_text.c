/* SPDX-License-Identifier: MIT */
/* Each form of stack text as its tool prints it, with names inserted; and text that only looks like
 * one. The lines are copied from the tools; stack_text_run.h makes the names. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "tests/support/stack_text_run.h"

static struct stack_text_run run;

static void expect_run(const char *in, const char *out)
{
	buf_clear(&run.output);
	buf_clear(&run.queries);
	stack_text_run(&run, in, strlen(in));
	cr_assert_not(run.failed);
	cr_expect_str_eq(buf_string(&run.output), out);
}

/* Also without names, and with every size of piece. */
static void expect_text(const char *in, const char *out)
{
	for (run.piece_bytes = 0; run.piece_bytes < 9; run.piece_bytes++)
		expect_run(in, out);
	run.no_names = true;
	expect_run(in, in);
	run.no_names = false;
	run.piece_bytes = 0;
}

static void expect_untouched(const char *text)
{
	expect_text(text, text);
	cr_expect_str_eq(buf_string(&run.queries), "", "asked for: %s", buf_string(&run.queries));
}

static void expect_queries(const char *queries)
{
	cr_expect_str_eq(buf_string(&run.queries), queries);
}

static void expect_owners(const char *in, const char *out)
{
	run.keep_owners = run.no_default = true;
	expect_text(in, out);
}

static void tear_down(void)
{
	stack_text_run_deinit(&run);
}

TestSuite(stack_text, .fini = tear_down);

/* ---- perf script ------------------------------------------------------------ */

Test(stack_text, names_frames_of_perf_script)
{
	expect_text("worker 27756   568.578983:   10101010 cpu-clock: \n"
		    "\t          743314 [unknown] (/memfd:doublemapper (deleted))\n"
		    "\t    7fa5a1501402 [unknown] (/lib/a b.dll)\n"
		    "\t           891f5 start_thread+0x305 (/usr/lib/libc.so.6)\n"
		    "\n",
		    "worker 27756   568.578983:   10101010 cpu-clock: \n"
		    "\t          743314 A.B::C(int32)+0x314 (/memfd:doublemapper (deleted))\n"
		    "\t    7fa5a1501402 A.B::C(int32)+0x402 (/lib/a b.dll)\n"
		    "\t           891f5 start_thread+0x305 (/usr/lib/libc.so.6)\n"
		    "\n");
}

Test(stack_text, takes_the_image_of_perf_script_whole)
{
	expect_text("\t 743314 [unknown] (/memfd:doublemapper (deleted))\n"
		    "\t 7fa5a1501402 [unknown] ([unknown])\n",
		    "\t 743314 A.B::C(int32)+0x314 (/memfd:doublemapper (deleted))\n"
		    "\t 7fa5a1501402 A.B::C(int32)+0x402 ([unknown])\n");
	expect_run("\t 743314 [unknown] (/memfd:doublemapper (deleted))\n"
		   "\t 7fa5a1501402 [unknown] ([unknown])\n",
		   "\t 743314 A.B::C(int32)+0x314 (/memfd:doublemapper (deleted))\n"
		   "\t 7fa5a1501402 A.B::C(int32)+0x402 ([unknown])\n");
	expect_queries("743314 /memfd:doublemapper (deleted)\n7fa5a1501402 [unknown] return\n");
}

Test(stack_text, takes_the_caller_of_a_frame_for_a_return_address)
{
	/* The second address is behind a call at the end of a method, where no method is. */
	expect_run("a 1 1.000001: x: \n\t7f0000001010 f+0x10 (/lib/a)\n"
		   "\t7f0000001800 [unknown] (/lib/a)\n\n"
		   "a 1 1.000002: x: \n\t7f0000001800 [unknown] (/lib/a)\n\n",
		   "a 1 1.000001: x: \n\t7f0000001010 f+0x10 (/lib/a)\n"
		   "\t7f0000001800 A.B::C(int32)+0x800 (/lib/a)\n\n"
		   "a 1 1.000002: x: \n\t7f0000001800 [unknown] (/lib/a)\n\n");
	expect_queries("7f0000001800 /lib/a return\n7f0000001800 /lib/a\n");
}

Test(stack_text, sees_the_caller_behind_the_source_line_of_a_frame)
{
	expect_run("a 1 1.000001: \n\t7f0000001010 f+0x10 (/lib/a)\n  add.c:12\n"
		   "\t7f0000001800 [unknown] (/lib/a)\n  a[1800]\n"
		   "\t7f0000001800 [unknown] (/lib/a)\n  [unknown]\n\n"
		   "\t7f0000001800 [unknown] (/lib/a)\n",
		   "a 1 1.000001: \n\t7f0000001010 f+0x10 (/lib/a)\n  add.c:12\n"
		   "\t7f0000001800 A.B::C(int32)+0x800 (/lib/a)\n  a[1800]\n"
		   "\t7f0000001800 A.B::C(int32)+0x800 (/lib/a)\n  [unknown]\n\n"
		   "\t7f0000001800 [unknown] (/lib/a)\n");
	expect_queries(
		"7f0000001800 /lib/a return\n7f0000001800 /lib/a return\n7f0000001800 /lib/a\n");
}

/* Frame pointers lead past the interrupted function to its caller. */
Test(stack_text, takes_what_comes_behind_a_signal_for_a_caller_in_perf_script)
{
	expect_run("a 1 1.000001: \n\t7f0000001010 burn+0x10 (/lib/a)\n"
		   "\t7f0000001018 __restore_rt+0x0 (/lib/c)\n"
		   "\t7f0000001800 [unknown] (/lib/a)\n\t7f0000001800 [unknown] (/lib/a)\n\n",
		   "a 1 1.000001: \n\t7f0000001010 burn+0x10 (/lib/a)\n"
		   "\t7f0000001018 __restore_rt+0x0 (/lib/c)\n"
		   "\t7f0000001800 A.B::C(int32)+0x800 (/lib/a)\n"
		   "\t7f0000001800 A.B::C(int32)+0x800 (/lib/a)\n\n");
	expect_queries("7f0000001800 /lib/a return\n7f0000001800 /lib/a return\n");
}

/* -F comm,pid,tid,time,event,ip,dso and less. */
Test(stack_text, names_a_sample_without_callers_that_is_printed_without_sym)
{
	expect_text("w;a b  12/13  7.577174: cpu-clock:      7fa523b52314 (/memfd:x (deleted))\n"
		    "w 12 7.577174:      7fa523b52314 (/lib/a)\n"
		    "w 12 7.577174: cpu-clock:      7fa523b52314\n"
		    "w 12 7.577174:      7fa523b52314 ([unknown])\n"
		    "w 12 7.577174: s:x: prev=7fa523b52314\n"
		    "w 12 7.577174: s:x: a 7fa523b52314 (/lib/a)\n",
		    "w;a b  12/13  7.577174: cpu-clock:      7fa523b52314 A.B::C(int32)+0x314 "
		    "(/memfd:x (deleted))\n"
		    "w 12 7.577174:      7fa523b52314 A.B::C(int32)+0x314 (/lib/a)\n"
		    "w 12 7.577174: cpu-clock:      A.B::C(int32)+0x314\n"
		    "w 12 7.577174:      7fa523b52314 A.B::C(int32)+0x314 ([unknown])\n"
		    "w 12 7.577174: s:x: prev=7fa523b52314\n"
		    "w 12 7.577174: s:x: a 7fa523b52314 (/lib/a)\n");
}

Test(stack_text, takes_the_first_user_frame_behind_the_kernels_as_it_is)
{
	expect_run("a 1 1.000001: x: \n\tffffffff81000010 [unknown] ([kernel.kallsyms])\n"
		   "\t7f0000001000 [unknown] (/lib/a)\n\t7f0000002001 [unknown] (/lib/a)\n",
		   "a 1 1.000001: x: \n\tffffffff81000010 [unknown] ([kernel.kallsyms])\n"
		   "\t7f0000001000 A.B::C(int32)+0x0 (/lib/a)\n"
		   "\t7f0000002001 A.B::C(int32)+0x1 (/lib/a)\n");
	expect_queries("7f0000001000 /lib/a\n7f0000002001 /lib/a return\n");
}

Test(stack_text, names_a_sample_of_perf_script_without_callers)
{
	const char *in =
		"  .NET TP Worker  3823   988.775109:   10101010 cpu-clock:      7fa523b8c637 "
		"[unknown] (/memfd:doublemapper (deleted))\n"
		"  .NET TP Worker  3823   988.775110:   10101010 cpu-clock:      7fa523b8c637 "
		"[unknown] (/memfd:doublemapper (deleted))\n";

	expect_text(in,
		    "  .NET TP Worker  3823   988.775109:   10101010 cpu-clock:      7fa523b8c637 "
		    "A.B::C(int32)+0x637 (/memfd:doublemapper (deleted))\n"
		    "  .NET TP Worker  3823   988.775110:   10101010 cpu-clock:      7fa523b8c637 "
		    "A.B::C(int32)+0x637 (/memfd:doublemapper (deleted))\n");
	expect_run("x 1 1.000001: y: 7fa523b8c637 [unknown] (/lib/a)\n",
		   "x 1 1.000001: y: 7fa523b8c637 A.B::C(int32)+0x637 (/lib/a)\n");
	expect_queries("7fa523b8c637 /lib/a\n");
}

Test(stack_text, puts_names_where_perf_script_prints_none)
{
	expect_text("worker 27737/27756 \n\t          743314 (/memfd:doublemapper (deleted))\n",
		    "worker 27737/27756 \n\t          743314 A.B::C(int32)+0x314 "
		    "(/memfd:doublemapper (deleted))\n");
	expect_text("\t    7fa523b8c637 [unknown]\n", "\t    7fa523b8c637 A.B::C(int32)\n");
	expect_text("\t    7fa523b8c637\n", "\t    A.B::C(int32)+0x637\n");
}

#define TRACED "                                       "

Test(stack_text, names_callers_of_perf_trace)
{
	expect_text("     0.042 ( 0.040 ms): .NET Tiered Co/27756 futex(op: WAKE)  = 0\n" TRACED
		    "__futex (/usr/lib/libc.so.6)\n" TRACED
		    "[0x743314] (/memfd:doublemapper (deleted))\n",
		    "     0.042 ( 0.040 ms): .NET Tiered Co/27756 futex(op: WAKE)  = 0\n" TRACED
		    "__futex (/usr/lib/libc.so.6)\n" TRACED
		    "A.B::C(int32) (/memfd:doublemapper (deleted))\n");
	expect_text("         ? (         ): a/b/12  ... [continued]: futex()) = 0\n" TRACED
		    "[0x743314] (/memfd:doublemapper (deleted))\n",
		    "         ? (         ): a/b/12  ... [continued]: futex()) = 0\n" TRACED
		    "A.B::C(int32) (/memfd:doublemapper (deleted))\n");
	expect_text("     0.000 .NET TP Worker/12 sched:sched_switch(prev_comm: \"a\")\n" TRACED
		    "schedule ([kernel.kallsyms])\n" TRACED "[0x743314] (/a)\n",
		    "     0.000 .NET TP Worker/12 sched:sched_switch(prev_comm: \"a\")\n" TRACED
		    "schedule ([kernel.kallsyms])\n" TRACED "A.B::C(int32) (/a)\n");
	expect_queries("743314 /a\n");
	/* Without a head, or in the kernel, it is something else. */
	expect_untouched(TRACED "[0x743314] (/memfd:doublemapper (deleted))\n");
	expect_untouched("     0.042 (         ): 12 read() ...\n" TRACED "[0] ([unknown])\n" TRACED
			 "[0xffffffff81000000] ([kernel.kallsyms])\n");
}

Test(stack_text, reads_owners_from_heads_of_perf_trace)
{
	expect_owners("         ? (         ): a/b/12  ... [continued]: futex()) = 0\n" TRACED
		      "[0x743314] (/a)\n     0.000 .NET TP Worker/13 sched:a(b: 1)\n" TRACED
		      "[0x743314] (/a)\n     0.042 ( 0.040 ms): futex(op: WAKE)  = 0\n" TRACED
		      "[0x743314] (/a)\n",
		      "         ? (         ): a/b/12  ... [continued]: futex()) = 0\n" TRACED
		      "[T 12] (/a)\n     0.000 .NET TP Worker/13 sched:a(b: 1)\n" TRACED
		      "[T 13] (/a)\n     0.042 ( 0.040 ms): futex(op: WAKE)  = 0\n" TRACED
		      "[- 0] (/a)\n");
}

Test(stack_text, names_frames_of_lldb)
{
	expect_text("  * frame #0: 0x00007fa523b8c637\n"
		    "    frame #1: 0x00007fa523b8c637 libc.so.6`__restore_rt\n"
		    "    frame #2: 0x00007fa523b8c637\n    frame #3: 0x00007fa523b8c637\n",
		    "  * frame #0: 0x00007fa523b8c637 A.B::C(int32) + 1591\n"
		    "    frame #1: 0x00007fa523b8c637 libc.so.6`__restore_rt\n"
		    "    frame #2: 0x00007fa523b8c637 A.B::C(int32) + 1591\n"
		    "    frame #3: 0x00007fa523b8c637 A.B::C(int32) + 1591\n");
	expect_queries("7fa523b8c637\n7fa523b8c637\n7fa523b8c637 return\n");
	expect_untouched(
		"frame #0: 0x1f (x)\nframe #x: 0x00007fa523b8c637\n* frame\n"
		"    frame #1: 0x00007fa523b8c637 libcoreclr.so`___lldb_unnamed_symbol1 + 4\n");
}

Test(stack_text, names_frames_of_strace)
{
	expect_text("read(13, \"\", 4096)  = 4\n > /usr/lib/libc.so.6(read+0x4e) [0xf805e]\n"
		    " > /memfd:doublemapper (deleted)() [0x743314]\n"
		    "read(13, \"\", 4096)  = 4\n > /a (b)() [0x743314]\n",
		    "read(13, \"\", 4096)  = 4\n > /usr/lib/libc.so.6(read+0x4e) [0xf805e]\n"
		    " > /memfd:doublemapper (deleted)(A.B::C(int32)+0x314) [0x743314]\n"
		    "read(13, \"\", 4096)  = 4\n > /a (b)(A.B::C(int32)+0x314) [0x743314]\n");
	expect_queries("743314 /memfd:doublemapper (deleted) return\n743314 /a (b)\n");
	expect_untouched(" > unexpected_backtracing_error [0x1e8480]\n > /a [0x743314]\n > /a()\n"
			 " > () [0x743314]\n > /a() [743314]\n > /a() [0x743314\n");
}

Test(stack_text, reads_owners_of_strace)
{
	expect_owners("3373  read(13,  <unfinished ...>\n > /a() [0x743314]\n"
		      "[pid  3374] read(13, \"\", 1)  = 1\n > /a() [0x743314]\n"
		      "3375<TP Worker> read(13, \"\", 1) = 1\n > /a() [0x743314]\n"
		      "read(13, \"\", 1) = 1\n > /a() [0x743314]\n",
		      "3373  read(13,  <unfinished ...>\n > /a([T 3373]+0x314) [0x743314]\n"
		      "[pid  3374] read(13, \"\", 1)  = 1\n > /a([T 3374]+0x314) [0x743314]\n"
		      "3375<TP Worker> read(13, \"\", 1) = 1\n > /a([T 3375]+0x314) [0x743314]\n"
		      "read(13, \"\", 1) = 1\n > /a([- 0]+0x314) [0x743314]\n");
}

Test(stack_text, leaves_offsets_of_perf_script_whose_file_is_not_told)
{
	expect_untouched("\t          743314 [unknown]\n\t          743314\n743314\n\t743314\n");
	cr_expect_eq(run.missing.files, 2);
}

Test(stack_text, prints_offsets_as_perf_script_was_told_to)
{
	expect_text("\t 743314 [unknown] (/lib/a)\n\t 891f5 start_thread (/lib/c)\n"
		    "\t 743314 [unknown] (/lib/a)\n\t 891f5 start_thread+0x5 (/lib/c)\n"
		    "\t 743314 [unknown] (/lib/a)\n",
		    "\t 743314 A.B::C(int32)+0x314 (/lib/a)\n\t 891f5 start_thread (/lib/c)\n"
		    "\t 743314 A.B::C(int32) (/lib/a)\n\t 891f5 start_thread+0x5 (/lib/c)\n"
		    "\t 743314 A.B::C(int32)+0x314 (/lib/a)\n");
}

Test(stack_text, reads_owners_from_heads_of_perf_script)
{
	expect_owners(
		"worker 27756   568.578983:   10101010 cpu-clock: \n\t743314 [unknown] (/a)\n\n"
		".NET TP Worker 27737/27758 [001]   568.580:   1 cpu-clock: \n"
		"\t743314 [unknown] (/a)\n\n"
		"a: b 1 2  12 [000] 5.123456789: sched:sched_switch: a:1 2.345:\n"
		"\t743314 [unknown] (/a)\n\n"
		"      bed  77  1.000001:  1 x: \n\t743314 [unknown] (/a)\n",
		"worker 27756   568.578983:   10101010 cpu-clock: \n\t743314 [T 27756]+0x314 "
		"(/a)\n\n"
		".NET TP Worker 27737/27758 [001]   568.580:   1 cpu-clock: \n"
		"\t743314 [P 27737]+0x314 (/a)\n\n"
		"a: b 1 2  12 [000] 5.123456789: sched:sched_switch: a:1 2.345:\n"
		"\t743314 [T 12]+0x314 (/a)\n\n"
		"      bed  77  1.000001:  1 x: \n\t743314 [T 77]+0x314 (/a)\n");
}

/* Without -F +time. A line that is not certainly a head does not name the process of the frames. */
Test(stack_text, reads_owners_from_heads_without_a_time)
{
	expect_owners("21037/21038 \n\t743314 [unknown] (/a)\n\n"
		      "             sp3   21037 \n\t743314 [unknown] (/a)\n\n"
		      "  21037 cpu-clock: \n\t743314 [unknown] (/a)\n\n"
		      "  21037 \n\t743314 [unknown] (/a)\n\n"
		      "    250000 \n\t743314 [unknown] (/a)\n\n"
		      "a b 21037/21038     250000 cycles:u: \n\t743314 [unknown] (/a)\n\n"
		      "a b   21037     250000 cycles:u: \n\t743314 [unknown] (/a)\n\n"
		      "21037/21038     250000 \n\t743314 [unknown] (/a)\n\n"
		      "21037/21038\n\t743314 [unknown] (/a)\n\n"
		      "a b 21037/21038  syscalls:sys_enter_read: fd: 0x7, /x 1/2\n\t743314 "
		      "[unknown] (/a)\n\n"
		      "page 3\n\t743314 [unknown] (/a)\n\n",
		      "21037/21038 \n\t743314 [P 21037]+0x314 (/a)\n\n"
		      "             sp3   21037 \n\t743314 [T 21037]+0x314 (/a)\n\n"
		      "  21037 cpu-clock: \n\t743314 [T 21037]+0x314 (/a)\n\n"
		      "  21037 \n\t743314 [T 21037]+0x314 (/a)\n\n"
		      "    250000 \n\t743314 [- 0]+0x314 (/a)\n\n"
		      "a b 21037/21038     250000 cycles:u: \n\t743314 [P 21037]+0x314 (/a)\n\n"
		      "a b   21037     250000 cycles:u: \n\t743314 [T 21037]+0x314 (/a)\n\n"
		      "21037/21038     250000 \n\t743314 [P 21037]+0x314 (/a)\n\n"
		      "21037/21038\n\t743314 [- 0]+0x314 (/a)\n\n"
		      "a b 21037/21038  syscalls:sys_enter_read: fd: 0x7, /x 1/2\n\t743314 [P "
		      "21037]+0x314 (/a)\n\n"
		      "page 3\n\t743314 [- 0]+0x314 (/a)\n\n");
}

/* A sample without callers stands on the line of its head. */
Test(stack_text, names_samples_without_callers_behind_heads_without_a_time)
{
	static const char in[] =
		"          sorter  3507    5025125 cpu-clock:      7f6a6ac96772 [unknown] "
		"(/memfd:doublemapper (deleted))\n"
		"            node  3522    5025125 cpu-clock:      7f5dca7c5b88 f (/tmp/a)\n"
		"          a b 12 3507/3592       401136 [unknown] (/lib/a)\n"
		"          sorter  3509 [001]     7f6a6ac96772 [unknown]\n"
		" 3592      7f6a6ac96772 [unknown] (/lib/a)\n"
		"          sorter      7f6a6ac96772 [unknown] (/lib/a)\n";

	expect_owners(in,
		      "          sorter  3507    5025125 cpu-clock:      7f6a6ac96772 [T "
		      "3507]+0x772 (/memfd:doublemapper (deleted))\n"
		      "            node  3522    5025125 cpu-clock:      7f5dca7c5b88 f (/tmp/a)\n"
		      "          a b 12 3507/3592       401136 [P 3507]+0x136 (/lib/a)\n"
		      "          sorter  3509 [001]     7f6a6ac96772 [T 3509]\n"
		      " 3592      7f6a6ac96772 [T 3592]+0x772 (/lib/a)\n"
		      "          sorter      7f6a6ac96772 [- 0]+0x772 (/lib/a)\n");
	expect_queries("7f6a6ac96772 /memfd:doublemapper (deleted)\n401136 /lib/a\n"
		       "7f6a6ac96772\n7f6a6ac96772 /lib/a\n7f6a6ac96772 /lib/a\n");
	expect_untouched("fault at 7f6a6ac96772 [unknown]\nfault 12 at 7f6a6ac96772 [unknown] x\n"
			 "a 12 7f6a6ac96772 [unknownish] (/lib/a)\n");
}

/* Addresses of programs that are not position independent are short, but padded like all others.
 * None of these is a caller. */
Test(stack_text, names_samples_without_callers_in_their_columns)
{
	expect_text("           401136\n           401137\n     7f6a6ac96772\n     7f6a6ac96773\n"
		    "              ea 11190/11190 28016.524760:            401136\n"
		    "              ea 11190/11190 28016.524761:            401137\n",
		    "           A.B::C(int32)+0x136\n           A.B::C(int32)+0x137\n"
		    "     A.B::C(int32)+0x772\n     A.B::C(int32)+0x773\n"
		    "              ea 11190/11190 28016.524760:            A.B::C(int32)+0x136\n"
		    "              ea 11190/11190 28016.524761:            A.B::C(int32)+0x137\n");
	expect_queries("401136\n401137\n7f6a6ac96772\n7f6a6ac96773\n401136\n401137\n");
	expect_untouched("401136\n          401136\n            401136\n\t           401136\n"
			 "              ea 11190/11190 28016.524760:  401136\n");
}

/* ---- bpftrace ----------------------------------------------------------------- */

static void pass_over(void *context, const struct stack_frame *frame)
{
	(void)context;
	(void)frame;
}

static uint64_t time_behind(const char *line)
{
	struct stack_text text;

	stack_text_init(&text, pass_over, NULL);
	stack_text_line(&text, line, strlen(line));
	/* Frames of the stack have the time too. */
	stack_text_line(&text, "\t  7f0000001000 [unknown] ([unknown])", 38);
	return text.time_ns;
}

/* The missing digits were cut off: code that was loaded in that microsecond was there. */
Test(stack_text, reads_the_time_of_perf_script)
{
	cr_expect_eq(time_behind("java 1 568.578983: cpu-clock:"), 568578983999);
	cr_expect_eq(time_behind("a b: 1/2 [001] 568.578983123: cpu-clock:"), 568578983123);
	cr_expect_eq(time_behind("java 1 62885.000: 1 cpu-clock:"), 62885000999999);
	cr_expect_eq(time_behind("java 1 99999999999999999999.000001: cpu-clock:"), 0);
	cr_expect_eq(time_behind("java 1/1"), 0);
	cr_expect_eq(time_behind("PID 12 - process"), 0);
}

Test(stack_text, names_stacks_of_bpftrace)
{
	expect_text(
		"@[\n    0x7fa523b90322\n    0x7fa5a0dfb401\n    start_thread+773\n]: 12\n",
		"@[\n    A.B::C(int32)+802\n    A.B::C(int32)+1025\n    start_thread+773\n]: 12\n");
	expect_queries("7fa523b90322\n7fa5a0dfb401 return\n");
}

Test(stack_text, names_several_stacks_of_one_key_of_bpftrace)
{
	expect_run("@[\n    epoll_wait+12\n, \n    0x7f0000001000\n    0x7f0000002001\n, 12, a b]: "
		   "1\n",
		   "@[\n    epoll_wait+12\n, \n    A.B::C(int32)+0\n    A.B::C(int32)+1\n, 12, a "
		   "b]: 1\n");
	expect_queries("7f0000001000\n7f0000002001 return\n");
	expect_run("@x[dotnet, \n    epoll_wait+12\n    0x7f0000002001\n]: 1\n",
		   "@x[dotnet, \n    epoll_wait+12\n    A.B::C(int32)+1\n]: 1\n");
	expect_queries("7f0000002001 return\n");
}

Test(stack_text, names_stacks_of_bpftrace_in_perf_mode_and_their_files)
{
	expect_text("@[\n\t7fa5228db04b 0x7fa5228db04b ([unknown])\n"
		    "\t7fa5a10a71f5 start_thread+773 (/usr/lib/libc.so.6)\n, 27737, x]: 1\n",
		    "@[\n\t7fa5228db04b A.B::C(int32)+75 (/lib/a b.dll)\n"
		    "\t7fa5a10a71f5 start_thread+773 (/usr/lib/libc.so.6)\n, 27737, x]: 1\n");
}

Test(stack_text, names_stacks_of_bpftrace_in_raw_mode)
{
	expect_text("@[\n7fa5228db04b\n401136\n]: 1\n401136\n",
		    "@[\nA.B::C(int32)+75\nA.B::C(int32)+310\n]: 1\n401136\n");
}

Test(stack_text, names_single_addresses_in_keys_of_bpftrace)
{
	expect_text("@[0x7fa523d18080, 27737]: 1\n@x[dotnet, 0x7fa5228db043]: 22\n",
		    "@[A.B::C(int32), 27737]: 1\n@x[dotnet, A.B::C(int32)]: 22\n");
}

Test(stack_text, names_stacks_in_json_of_bpftrace)
{
	run.name = "a\"b\\c";
	expect_text("{\"type\": \"map\", \"data\": {\"@\": {\"\\n    0x7fa5228d9088\\n    "
		    "0x7fa523cf4042\\n    start_thread+773\\n\": 1}}}\n",
		    "{\"type\": \"map\", \"data\": {\"@\": {\"\\n    a\\\"b\\\\c+136\\n    "
		    "a\\\"b\\\\c+66\\n    start_thread+773\\n\": 1}}}\n");
	expect_queries("7fa5228d9088\n7fa523cf4042 return\n");
}

Test(stack_text, names_single_addresses_beside_a_stack_in_a_key_of_bpftrace)
{
	expect_text("@[3504, .NET TP Worker, \n    0x7fa523b90322\n, 0x7fa523d18080]: 1\n"
		    "@k[0x7fa523d18080, \n    0x7fa523b90322\n, 0x7fa523d18080, \n"
		    "    0x7fa523b90322\n, a 0x, 0x7fa523d18080, 5]: 1\n, 0x7fa523d18080]: 1\n",
		    "@[3504, .NET TP Worker, \n    A.B::C(int32)+802\n, A.B::C(int32)]: 1\n"
		    "@k[A.B::C(int32), \n    A.B::C(int32)+802\n, A.B::C(int32), \n"
		    "    A.B::C(int32)+802\n, a 0x, A.B::C(int32), 5]: 1\n, 0x7fa523d18080]: 1\n");
}

Test(stack_text, names_single_addresses_in_keys_in_json_of_bpftrace)
{
	expect_text("{\"type\": \"map\", \"data\": {\"@k\": {\"0x7fa523d18080\": 1, "
		    "\"read\": 2}}}\n"
		    "{\"type\": \"map\", \"data\": {\"@q\": {\"3507,0x7fa523d18080,a\\\"b; "
		    "c,\": 1, \"x,0x7fa523d18080\":2}}}\n"
		    "{\"type\": \"hist\", \"data\": {\"@\": {\"0x7fa523d18080,\\n    "
		    "0x7fa523b90322\\n,0x7fa523d18080,\\n    0x7fa523b90322\\n,0x7fa523d18080\": "
		    "[{\"min\": 1}]}}}\n",
		    "{\"type\": \"map\", \"data\": {\"@k\": {\"A.B::C(int32)\": 1, "
		    "\"read\": 2}}}\n"
		    "{\"type\": \"map\", \"data\": {\"@q\": {\"3507,A.B::C(int32),a\\\"b; "
		    "c,\": 1, \"x,A.B::C(int32)\":2}}}\n"
		    "{\"type\": \"hist\", \"data\": {\"@\": {\"A.B::C(int32),\\n    "
		    "A.B::C(int32)+802\\n,A.B::C(int32),\\n    A.B::C(int32)+802\\n,"
		    "A.B::C(int32)\": [{\"min\": 1}]}}}\n");
}

Test(stack_text, puts_nothing_but_utf_8_into_json)
{
	run.name = "od\xff\xc3\xa4\xc3";
	expect_text(
		"{\"type\": \"map\", \"data\": {\"@\": {\"\\n    0x7fa523b90322\\n\": 1, "
		"\"0x7fa523b90322\": 1}}}\n0x7fa523b90322\n",
		"{\"type\": \"map\", \"data\": {\"@\": {\"\\n    od\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd"
		"+802\\n\": 1, \"od\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\": "
		"1}}}\nod\xff\xc3\xa4\xc3+0x322\n");
}

Test(stack_text, names_stacks_in_perf_and_raw_mode_in_json_of_bpftrace)
{
	expect_text("{\"type\": \"value\", \"data\": \"\\n\\t7fa523b90322 0x7fa523b90322 "
		    "([unknown])\\n\\t7fa5a10a71f5 start_thread+773 (/lib/libc.so.6)\\n\\t"
		    "7fa523b90401 0x7fa523b90401 ([unknown])\\n\"}\n",
		    "{\"type\": \"value\", \"data\": \"\\n\\t7fa523b90322 A.B::C(int32)+802 "
		    "(/lib/a b.dll)\\n\\t7fa5a10a71f5 start_thread+773 (/lib/libc.so.6)\\n\\t"
		    "7fa523b90401 A.B::C(int32)+1025 (/lib/a b.dll)\\n\"}\n");
	expect_queries("7fa523b90322\n7fa523b90401 return\n");
	expect_text("{\"type\": \"map\", \"data\": {\"@\": {\"\\n7fa523b90322\\n401136\\n\": "
		    "1}}}\n",
		    "{\"type\": \"map\", \"data\": {\"@\": {\"\\nA.B::C(int32)+802\\n"
		    "A.B::C(int32)+310\\n\": 1}}}\n");
	expect_queries("7fa523b90322\n401136 return\n");
}

Test(stack_text, leaves_what_is_no_key_and_no_stack_in_json_of_bpftrace)
{
	expect_untouched("{\"type\": \"map\", \"data\": {\"@w\": {\"3507\": \"0x7fa523d18080\", "
			 "\"a0x7fa523d18080,0x\": 1, \"a\\\\\": \"\\n401136\\n\"}}}\n"
			 "{\"type\": \"printf\", \"data\": \"0x7fa523d18080\\\\n    "
			 "0x7fa523d18080\\\\n\"}\n"
			 "{\"type\": \"printf\", \"data\": \"0x7fa523d18080\n"
			 "{\"data\": {\"0x7fa523d18080\": 1}}\n");
}

/* ---- BCC ---------------------------------------------------------------------- */

Test(stack_text, names_frames_of_bcc_that_have_an_address)
{
	expect_text("  7fa5a10a66a0     pthread_cond_timedwait@@GLIBC_2.3.2\n"
		    "  7fa5a0e3123f     [unknown]\n"
		    "    4\n\n",
		    "  7fa5a10a66a0     pthread_cond_timedwait@@GLIBC_2.3.2\n"
		    "  7fa5a0e3123f     A.B::C(int32)\n"
		    "    4\n\n");
	expect_queries("7fa5a0e3123f return\n");
	expect_text("            7fa5a0e3123f [unknown] [libcoreclr.so]\n",
		    "            7fa5a0e3123f A.B::C(int32)+0x23f [libcoreclr.so]\n");
}

Test(stack_text, names_frames_of_libbpf_tools)
{
	expect_text("    #3  0xffffffffc01018b7 __arm64_sys_clock_nanosleep+0x0\n"
		    "    #4  0x00007fa0bffd1014 [unknown]\n"
		    "    #5  0x00007fa0bffd2014 [unknown] (/lib/a+0x12)\n",
		    "    #3  0xffffffffc01018b7 __arm64_sys_clock_nanosleep+0x0\n"
		    "    #4  0x00007fa0bffd1014 A.B::C(int32)+0x14\n"
		    "    #5  0x00007fa0bffd2014 A.B::C(int32)+0x14 (/lib/a+0x12)\n");
	expect_queries("7fa0bffd1014\n7fa0bffd2014 return\n");
}

Test(stack_text, reads_owners_behind_stacks_of_bcc)
{
	expect_owners("  7fa5a0e3123f     [unknown]\n"
		      "    b'.NET Finalizer' [27737]\n    3\n\n"
		      "    #4  0x00007fa0bffd1014 [unknown]\n    --\n"
		      "    #4  0x00007fa0bffd1014 [unknown]\n"
		      "    -                dotnet (138757)\n        1\n\n"
		      "  7fa5a0e3123f     [unknown]\n\n",
		      "  7fa5a0e3123f     [P 27737]\n"
		      "    b'.NET Finalizer' [27737]\n    3\n\n"
		      "    #4  0x00007fa0bffd1014 [P 138757]+0x14\n    --\n"
		      "    #4  0x00007fa0bffd1014 [P 138757]+0x14\n"
		      "    -                dotnet (138757)\n        1\n\n"
		      "  7fa5a0e3123f     [- 0]\n\n");
}

Test(stack_text, reads_owners_from_rows_of_trace)
{
	expect_owners("TIME     PID     TID     COMM            FUNC             -\n"
		      "12:00:01 27737   27756   worker          pthread_mutex_lock\n"
		      "            7fa5a0e3123f [unknown]\n\n",
		      "TIME     PID     TID     COMM            FUNC             -\n"
		      "12:00:01 27737   27756   worker          pthread_mutex_lock\n"
		      "            7fa5a0e3123f [P 27737]\n\n");
}

Test(stack_text, counts_frames_of_bcc_that_have_no_address)
{
	expect_untouched("    [unknown]\n    [unknown] [libcoreclr.so]\n    start_thread\n"
			 "    -                .NET TP Worker (27737)\n        1\n\n"
			 "worker;start_thread;[unknown];[unknown] 3\n");
	cr_expect_eq(run.missing.addresses, 4);
}

Test(stack_text, names_addresses_in_folded_lines)
{
	run.name = "a;b";
	run.tier = "Tier0";
	expect_text(".NET TP Worker;start_thread;0x7fa5a0e31801;7fa523b8c001;0x7fa523b8c800 12\n",
		    ".NET TP Worker;start_thread;0x7fa5a0e31801;a:b[Tier0];0x7fa523b8c800 12\n");
	expect_queries("7fa5a0e31801 return\n7fa523b8c001 return\n7fa523b8c800\n");
}

Test(stack_text, takes_the_last_user_frame_of_a_folded_line_as_it_is)
{
	expect_run("a;0x7f0000001001;0x7f0000001000;-;do_syscall_64_[k];x_[k] 1\n"
		   "a;0x7f0000001001;0x7f0000001000;x_[k] 1\n",
		   "a;A.B::C(int32);A.B::C(int32);-;do_syscall_64_[k];x_[k] 1\n"
		   "a;A.B::C(int32);A.B::C(int32);x_[k] 1\n");
	expect_queries("7f0000001001 return\n7f0000001000\n7f0000001001 return\n7f0000001000\n");
}

/* ---- debuggers ------------------------------------------------------------------ */

Test(stack_text, names_frames_of_eu_stack)
{
	expect_owners("PID 27737 - process\nTID 27737:\n"
		      "#0  0x00007fa5a10a3016\n"
		      "#1  0x00007fa5a10a65d8 pthread_cond_wait@@GLIBC_2.3.2\n"
		      "#2  0x00007fa5a0e31612 - /usr/share/x.so\n"
		      "#10 0x00007fa5a0e31612 - 1\n"
		      "#11 0x00007fa5a0e31612 - 1 - /usr/share/x.so\n",
		      "PID 27737 - process\nTID 27737:\n"
		      "#0  0x00007fa5a10a3016 [P 27737]\n"
		      "#1  0x00007fa5a10a65d8 pthread_cond_wait@@GLIBC_2.3.2\n"
		      "#2  0x00007fa5a0e31612 [P 27737] - /usr/share/x.so\n"
		      "#10 0x00007fa5a0e31612 - 1 [P 27737]\n"
		      "#11 0x00007fa5a0e31612 - 1 [P 27737] - /usr/share/x.so\n");
	expect_queries("7fa5a10a3016\n7fa5a0e31612 return\n7fa5a0e31612 return\n"
		       "7fa5a0e31612 return\n");
}

Test(stack_text, names_no_frames_of_a_core_by_a_living_process)
{
	expect_owners("PID 27737 - core\n#0  0x00007fa5a10a3016\n",
		      "PID 27737 - core\n#0  0x00007fa5a10a3016 [P 0]\n");
}

Test(stack_text, names_frames_of_gdb)
{
	expect_owners("Thread 2 (Thread 0x7fa59f000700 (LWP 27756) \"worker\"):\n"
		      "#0  0x00007fa5a0e31612 in ?? () from /usr/share/x.so\n"
		      "#1  0x00007fa5a0e31612 in main (argc=0x7fa5a0e31612)\n",
		      "Thread 2 (Thread 0x7fa59f000700 (LWP 27756) \"worker\"):\n"
		      "#0  0x00007fa5a0e31612 in [T 27756] () from /usr/share/x.so\n"
		      "#1  0x00007fa5a0e31612 in main (argc=0x7fa5a0e31612)\n");
}

/* The interrupted instruction is where the thread would have continued; it is no call. */
Test(stack_text, names_where_gdb_stopped_threads)
{
	expect_text(
		"0x00007fa5a0e31612 in ?? () from /lib/a\n"
		"* 1    Thread 0x7fa5a8dff6c0 (LWP 6183) \"a in ?? b\"  0x00007fa5a0e31100 in ?? "
		"()\n"
		"  12   Thread 0x7fa5a8dff6c1 (LWP 6184) \"x\" 0x00007fa5a0e31200 in ?? () from "
		"/lib/a\n"
		"  13   Thread 0x7fa5a8dff6c1 (LWP 6184) \"x\" 0x00007fa5a0e31200 in read () from "
		"/lib/a\n",
		"0x00007fa5a0e31612 in A.B::C(int32) () from /lib/a\n"
		"* 1    Thread 0x7fa5a8dff6c0 (LWP 6183) \"a in ?? b\"  0x00007fa5a0e31100 in "
		"A.B::C(int32) ()\n"
		"  12   Thread 0x7fa5a8dff6c1 (LWP 6184) \"x\" 0x00007fa5a0e31200 in "
		"A.B::C(int32) () from /lib/a\n"
		"  13   Thread 0x7fa5a8dff6c1 (LWP 6184) \"x\" 0x00007fa5a0e31200 in read () from "
		"/lib/a\n");
	expect_queries("7fa5a0e31612\n7fa5a0e31100\n7fa5a0e31200\n");
}

Test(stack_text, takes_what_a_signal_interrupted_for_no_caller_in_gdb)
{
	expect_text("#0  0x00007fa5a0e31612 in ?? ()\n"
		    "#1  0x00007fa5a0e31100 in ?? ()\n"
		    "#2  <signal handler called>\n"
		    "#3  0x00007fa5a0e31000 in ?? ()\n"
		    "#4  0x00007fa5a0e31200 in ?? ()\n",
		    "#0  0x00007fa5a0e31612 in A.B::C(int32) ()\n"
		    "#1  0x00007fa5a0e31100 in A.B::C(int32) ()\n"
		    "#2  <signal handler called>\n"
		    "#3  0x00007fa5a0e31000 in A.B::C(int32) ()\n"
		    "#4  0x00007fa5a0e31200 in A.B::C(int32) ()\n");
	expect_queries("7fa5a0e31612\n7fa5a0e31100 return\n7fa5a0e31000\n"
		       "7fa5a0e31200 return\n");
}

Test(stack_text, takes_what_a_signal_interrupted_for_no_caller_in_eu_stack)
{
	expect_text("TID 1:\n#0  0x00007fa5a0e31612\n#1  0x00007fa5a0e31100 - 1\n"
		    "#2  0x00007fa5a0e31000\n#3  0x00007fa5a0e31200 - 1\n"
		    "TID 2:\n#0  0x00007fa5a0e31612\n#1  0x00007fa5a0e31100\n",
		    "TID 1:\n#0  0x00007fa5a0e31612 A.B::C(int32)\n"
		    "#1  0x00007fa5a0e31100 - 1 A.B::C(int32)\n"
		    "#2  0x00007fa5a0e31000 A.B::C(int32)\n"
		    "#3  0x00007fa5a0e31200 - 1 A.B::C(int32)\n"
		    "TID 2:\n#0  0x00007fa5a0e31612 A.B::C(int32)\n"
		    "#1  0x00007fa5a0e31100 A.B::C(int32)\n");
	expect_queries("7fa5a0e31612\n7fa5a0e31100 return\n7fa5a0e31000\n7fa5a0e31200 return\n"
		       "7fa5a0e31612\n7fa5a0e31100 return\n");
	/* Without -a its name shows that. */
	expect_run("#0  0x00007fa5a0e31612\n#1  0x00007fa5a0e31100 __restore_rt\n"
		   "#2  0x00007fa5a0e31000\n#3  0x00007fa5a0e31200\n",
		   "#0  0x00007fa5a0e31612 A.B::C(int32)\n#1  0x00007fa5a0e31100 __restore_rt\n"
		   "#2  0x00007fa5a0e31000 A.B::C(int32)\n#3  0x00007fa5a0e31200 A.B::C(int32)\n");
	expect_queries("7fa5a0e31612\n7fa5a0e31000\n7fa5a0e31200 return\n");
}

/* ---- LTTng ----------------------------------------------------------------------- */

Test(stack_text, names_call_stacks_of_babeltrace)
{
	expect_text(
		"[17:05:03.123456789] (+0.000000123) host syscall_entry_read: { cpu_id = 1 }, { "
		"pid = 12, procname = \"a = b\", _callstack_user_length = 2, callstack_user = [ "
		"[0] "
		"= 0x7FA5A10A3016, [1] = 0x7FA5A0E31012 ] }, { fd = 3, buf = 0x7FA5A10A3016 }\n",
		"[17:05:03.123456789] (+0.000000123) host syscall_entry_read: { cpu_id = 1 }, { "
		"pid = 12, procname = \"a = b\", _callstack_user_length = 2, callstack_user = [ "
		"[0] "
		"= 0x7FA5A10A3016 \"A.B::C(int32)+0x16\", [1] = 0x7FA5A0E31012 "
		"\"A.B::C(int32)+0x12\" ] }, { fd = 3, buf = 0x7FA5A10A3016 }\n");
	expect_queries("7fa5a10a3016\n7fa5a0e31012 return\n");
}

Test(stack_text, names_the_instruction_pointer_of_babeltrace)
{
	expect_owners(
		"[17:05:03.1] (+?.?) host lttng_ust:x: { cpu_id = 1 }, { ip = 0x7FA5A10A3016, "
		"vpid = 99 }, { zip = 0x7FA5A10A3016, msg = \"ip = 0x7FA5A10A3016\" }\n"
		"[17:05:03.1] (+?.?) host lttng_ust:x: { ip = 0x7FA5A10A3016 }, { }\n",
		"[17:05:03.1] (+?.?) host lttng_ust:x: { cpu_id = 1 }, { ip = 0x7FA5A10A3016 "
		"\"[P 99]+0x16\", vpid = 99 }, { zip = 0x7FA5A10A3016, msg = \"ip = "
		"0x7FA5A10A3016\" }\n"
		"[17:05:03.1] (+?.?) host lttng_ust:x: { ip = 0x7FA5A10A3016 \"[- 0]+0x16\" }, { "
		"}\n");
}

Test(stack_text, names_the_decimal_instruction_pointer_of_lttng_ust)
{
	/* 140429296865302 is 0x7fb83e5b1016. */
	expect_text(
		"[16:03:37.404332749] (+0.000000001) vm lttng_ust_libc:calloc: { cpu_id = 1 }, { "
		"ip = 140429296865302, vpid = 17215, procname = \"timeout\" }, { nmemb = 100 }\n",
		"[16:03:37.404332749] (+0.000000001) vm lttng_ust_libc:calloc: { cpu_id = 1 }, { "
		"ip = 140429296865302 \"A.B::C(int32)+0x16\", vpid = 17215, procname = "
		"\"timeout\" }, { nmemb = 100 }\n");
	expect_queries("7fb83e5b1016\n");
	expect_untouched("[1] x: { ip = 99999999999999999999999, a = 1 }\n[1] x: { ip = \"a\" }\n");
}

Test(stack_text, names_addresses_of_instrumented_functions_in_babeltrace)
{
	expect_text("[1] host lttng_ust_cyg_profile:func_entry: { cpu_id = 1 }, { addr = "
		    "0x7FA5A10A3000, call_site = 0x7FA5A10A4800 }\n",
		    "[1] host lttng_ust_cyg_profile:func_entry: { cpu_id = 1 }, { addr = "
		    "0x7FA5A10A3000 \"A.B::C(int32)+0x0\", call_site = 0x7FA5A10A4800 "
		    "\"A.B::C(int32)+0x800\" }\n");
	expect_untouched("[1] host my:event: { cpu_id = 1 }, { addr = 0x7FA5A10A3000 }\n");
}

/* ---- addresses ---------------------------------------------------------------------- */

Test(stack_text, names_lines_that_are_an_address)
{
	expect_text(
		"0x7fa5a10a3016\n7FA5A10A4016\n00007fa5a10a5016\r\n0x401016\n0x7fa5a10a3017",
		"A.B::C(int32)+0x16\nA.B::C(int32)+0x16\nA.B::C(int32)+0x16\r\nA.B::C(int32)+0x16"
		"\nA.B::C(int32)+0x17");
	expect_queries("7fa5a10a3016\n7fa5a10a4016\n7fa5a10a5016\n401016\n7fa5a10a3017\n");
}

Test(stack_text, names_lines_of_several_addresses)
{
	expect_text("0x7fa5a10a3016 7fa5a10a4016,0x401016\n",
		    "A.B::C(int32)+0x16 A.B::C(int32)+0x16,A.B::C(int32)+0x16\n");
}

Test(stack_text, leaves_numbers_that_are_no_addresses)
{
	expect_untouched(
		"        1\n    4\n    1234567890\n12345678901\n1 2 3\n"
		"+0x7fa5a10a3016\nmain+0x1f\nsha 7fa5a10a3016\n7fa5a10a3016:\n"
		"commit 9a22e3e0000000000000000000000000\n"
		"9a22e3e00000000000000000000000000000000f\n"
		"7fa5a10a30167fa5a10a3016 x\n"
		"at 0x7fa5a10a3016 in the heap\n"
		"deadbeef\n0x\n0xg\n@: 0x7fa5a10a3016\n@x[1, 0x]: 3\n@[a0x7fa5a10a3016]: 1\n"
		"#1 abc\n#x\n# 0x7fa5a10a3016\nffffffffff600000 x\n");
}

Test(stack_text, leaves_addresses_of_the_kernel)
{
	expect_untouched("ffffffff81000010\n0xffffffff81000010\n\tffffffff81000010 [unknown] "
			 "([kernel.kallsyms])\n@[0xffffffff81000010]: 1\n#0  0xffffffff81000010\n");
}

Test(stack_text, leaves_frames_that_have_a_name)
{
	expect_untouched("\t          743314 main+0x14 (/lib/a)\n#0  0x00007fa5a10a3016 main\n"
			 "#0  0x00007fa5a10a3016 main - /lib/a\n  7fa5a10a66a0     read\n"
			 "[1] x: { ip = 0x7FA5A10A3016 \"main\" }\n\t743314 [unknownish] (/lib/a)\n"
			 "\t743314 [unknown]x (/lib/a)\n");
}

Test(stack_text, leaves_bytes_of_every_kind)
{
	char text[2048];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)(i * 2654435761u >> 24);
	for (run.piece_bytes = 0; run.piece_bytes < 40; run.piece_bytes++) {
		buf_clear(&run.output);
		stack_text_run(&run, text, sizeof(text));
		cr_assert_eq(run.output.size_bytes, sizeof(text));
		cr_expect(!memcmp(run.output.data, text, sizeof(text)));
	}
}

Test(stack_text, replaces_what_a_name_must_not_do_to_a_line)
{
	run.name = "a\nb\033[2Jc";
	expect_text("0x7fa5a10a3016\n", "a?b?[2Jc+0x16\n");
}

Test(stack_text, shortens_names_when_told_to)
{
	run.name = "instance void [A] N.T::M(int32)";
	run.tier = "OptimizedTier1";
	run.names = NAME_FORM_SHORT;
	expect_text("0x7fa5a10a3016\n", "N.T::M[OptimizedTier1]+0x16\n");
}
