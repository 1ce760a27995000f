/* SPDX-License-Identifier: MIT */
/* symbolize as a user runs it: on the recorded process, on one that has ended, on its own input.
 * The expected names stand in the recorded perf map and in the relative map of the image. */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/proc_tree.h"
#include "tests/support/program.h"
#include "tests/support/recorded.h"

static const char root[] = RECORDED_ROOT;
static char *scratch, *pid;

static void set_up(void)
{
	scratch = scratch_create();
	pid = recorded_pid();
}

/* Texts that a test makes; freed after it. */
static void *kept_texts[64];
static size_t kept_count;

static char *kept(char *text)
{
	cr_assert(text && kept_count < sizeof(kept_texts) / sizeof(*kept_texts));
	kept_texts[kept_count++] = text;
	return text;
}

static void tear_down(void)
{
	while (kept_count)
		free(kept_texts[--kept_count]);
	free(pid);
	scratch_remove(scratch);
}

TestSuite(symbolize, .init = set_up, .fini = tear_down);

static struct program_run run(const char *input, const char *const *arguments)
{
	return program_run(scratch, input, arguments);
}

#define RUN(input, ...) run(input, (const char *const[]){ "symbolize", __VA_ARGS__, NULL })

static char *format(const char *text, ...) __attribute__((format(printf, 1, 2)));

static char *format(const char *text, ...)
{
	va_list arguments;
	char *made;

	va_start(arguments, text);
	cr_assert(vasprintf(&made, text, arguments) >= 0);
	va_end(arguments);
	return kept(made);
}

static void expect_out(struct program_run done, int exit_code, const char *out)
{
	cr_expect_eq(done.exit_code, exit_code, "exit code %d: %s", done.exit_code, done.err);
	cr_expect_str_eq(done.out, out);
	program_run_deinit(&done);
}

static uint64_t jitted_method(char **name_ret)
{
	uint64_t address = recorded_method(pid, name_ret);

	kept(*name_ret);
	return address;
}

static uint64_t file_offset(uint64_t address, char **file_ret)
{
	uint64_t offset = recorded_file_offset(pid, address, file_ret);

	kept(*file_ret);
	return offset;
}

Test(symbolize, names_an_address_of_the_process_it_was_told)
{
	char *name, *in, *out;
	uint64_t address = jitted_method(&name);

	in = format("x\n0x%" PRIx64 "\n%" PRIx64, address + 4, address);
	out = format("x\n%s+0x4\n%s+0x0", name, name);
	expect_out(RUN(in, "-p", pid, "--root", root), 0, out);
	expect_out(RUN(in, pid, "--root", root), 0, out);
}

Test(symbolize, names_jitted_code_as_perf_prints_it)
{
	char *name, *file, *in, *out;
	uint64_t address = jitted_method(&name);
	uint64_t offset = file_offset(address, &file);

	in = format("a %s/%s 1.000001: x: \n\t%" PRIx64 " [unknown] (%s)\n\t%" PRIx64
		    " [unknown] (%s)\n\t%" PRIx64 " [unknown] (/elsewhere)\n",
		    pid, pid, offset + 4, file, address + 5, file, offset + 4);
	out = format("a %s/%s 1.000001: x: \n\t%" PRIx64 " %s+0x4 (%s)\n\t%" PRIx64
		     " %s+0x5 (%s)\n\t%" PRIx64 " [unknown] (/elsewhere)\n",
		     pid, pid, offset + 4, name, file, address + 5, name, file, offset + 4);
	expect_out(RUN(in, "--root", root), 0, out);
}

/* As a frame of code that .NET 11 puts in place of a running method. */
Test(symbolize, names_a_caller_that_is_the_beginning_of_a_function)
{
	char *name, *file, *in, *out;
	uint64_t address = jitted_method(&name);
	uint64_t offset = file_offset(address, &file);

	in = format("a %s/%s 1.000001: x: \n\t%" PRIx64 " [unknown] (%s)\n\t%" PRIx64
		    " [unknown] (%s)\n\t%" PRIx64 " [unknown] (%s)\n",
		    pid, pid, offset + 4, file, address, file, address - 1, file);
	out = format("a %s/%s 1.000001: x: \n\t%" PRIx64 " %s+0x4 (%s)\n\t%" PRIx64
		     " %s+0x0 (%s)\n\t%" PRIx64 " [unknown] (%s)\n",
		     pid, pid, offset + 4, name, file, address, name, file, address - 1, file);
	expect_out(RUN(in, "--root", root), 0, out);
}

Test(symbolize, leaves_frames_of_other_processes)
{
	char *name, *in;
	uint64_t address = jitted_method(&name);

	in = format("a 1/1 1.000001: x: \n\t%" PRIx64 " [unknown] ([unknown])\n", address);
	expect_out(RUN(in, pid, "--root", root), 0, in);
}

Test(symbolize, takes_a_thread_that_has_ended_for_one_of_the_process_it_was_told)
{
	char *name, *in, *out;
	uint64_t address = jitted_method(&name);

	in = format("a 77 1.000001: x: \n\t%" PRIx64 " [unknown] ([unknown])\n", address);
	out = format("a 77 1.000001: x: \n\t%" PRIx64 " %s+0x0 ([unknown])\n", address, name);
	expect_out(RUN(in, pid, "--root", root), 0, out);
	expect_out(RUN(in, "--root", root), 3, in);
}

Test(symbolize, says_that_it_does_not_know_whose_addresses_they_are)
{
	char *name, *in;
	uint64_t address = jitted_method(&name);
	struct program_run done;

	in = format("0x%" PRIx64 "\n", address);
	done = RUN(in, "--root", root);
	cr_expect_str_eq(done.err,
			 "dotnet-mapgen: 1 addresses stand where the text does not name their "
			 "process: give its PID\n");
	expect_out(done, 3, in);
}

Test(symbolize, says_that_frames_have_no_address)
{
	struct program_run done = RUN("    [unknown]\n", pid, "--root", root);

	cr_expect(strstr(done.err, "1 frames are [unknown] without an address"), "%s", done.err);
	expect_out(done, 3, "    [unknown]\n");
}

/* The output of bpftrace when it has lost all stacks, and when stacks have arrived. */
Test(symbolize, says_that_no_stack_arrived)
{
	const char *lost = "Attaching 1 probe...\n\n@[]: 12\n";
	struct program_run done = RUN(lost, pid, "--root", root);

	cr_expect(strstr(done.err, "no stack with an address arrived"), "%s", done.err);
	cr_expect(strstr(done.err, "BPFTRACE_CACHE_USER_SYMBOLS=1"), "%s", done.err);
	expect_out(done, 0, lost);
	done = RUN("0x7f0000001004\n", pid, "--root", root);
	cr_expect_null(strstr(done.err, "no stack"), "%s", done.err);
	program_run_deinit(&done);
}

/* As perf 6.1 prints callers without the field dso. */
Test(symbolize, says_that_offsets_are_of_no_file_that_it_is_told)
{
	const char *in = "a 1/1 1.000001: \n\t          163967 [unknown]\n";
	struct program_run done = RUN(in, pid, "--root", root);

	cr_expect(strstr(done.err, "1 frames are [unknown] with a short number"), "%s", done.err);
	expect_out(done, 3, in);
}

Test(symbolize, says_how_many_addresses_got_a_name)
{
	char *name, *in;
	uint64_t address = jitted_method(&name);
	struct program_run done;

	in = format("0x%" PRIx64 "\n0x10\n", address);
	done = RUN(in, "--json", "--root", root, pid);
	cr_expect_str_eq(done.err,
			 "{\"addresses\": 2, \"named\": 1, \"bounded\": 0, \"no_symbols\": 0, "
			 "\"unmapped\": 1, \"of_other_processes\": 0, \"of_processes_gone\": 0, "
			 "\"of_no_process\": 0, \"of_no_time\": 0, "
			 "\"with_lines\": 0, \"without_lines\": 0, \"frames_without_address\": 0, "
			 "\"offsets_without_file\": 0}\n");
	program_run_deinit(&done);
	done = RUN(in, "-v", "--root", root, pid);
	cr_expect(strstr(done.err, "1 of 2 addresses without a name got one"), "%s", done.err);
	program_run_deinit(&done);
}

Test(symbolize, names_addresses_of_a_process_that_is_gone_by_the_map_it_left)
{
	struct proc_tree tree;
	struct program_run done;

	proc_tree_create(&tree);
	proc_tree_make_directory(&tree, "/proc");
	proc_tree_write_text(&tree, "/tmp/perf-77.map",
			     "7f0000001000 100 a b\n7f0000001100 10 c\n");
	done = RUN("a 77/78 1.000001: x: \n\t7f0000001004 [unknown] ([unknown])\n"
		   "\t7f0000001100 [unknown] ([unknown])\n\t7f0000001005 [unknown] (/lib/x)\n"
		   "\t7f0000001005 [unknown] (/memfd:doublemapper (deleted))\n"
		   "\t1005 [unknown] (/memfd:doublemapper (deleted))\n",
		   "--root", tree.root);
	cr_expect(strstr(done.err, "the perf map that lies there"), "%s", done.err);
	/* Addresses in files are not reported as unmapped. */
	cr_expect(strstr(done.err, "2 addresses belong to processes that have ended"), "%s",
		  done.err);
	expect_out(done, 3,
		   "a 77/78 1.000001: x: \n\t7f0000001004 a b+0x4 ([unknown])\n"
		   "\t7f0000001100 a b+0x100 ([unknown])\n\t7f0000001005 [unknown] (/lib/x)\n"
		   "\t7f0000001005 a b+0x5 (/memfd:doublemapper (deleted))\n"
		   "\t1005 [unknown] (/memfd:doublemapper (deleted))\n");
	proc_tree_destroy(&tree);
}

Test(symbolize, passes_the_text_on_where_the_process_is_not_there)
{
	struct program_run done = RUN("0x7f0000001004\n", "-p", "77", "--root", root);

	cr_expect_eq(count_lines(done.err), 2, "%s", done.err);
	expect_out(done, 3, "0x7f0000001004\n");
}

Test(symbolize, writes_what_it_read_byte_for_byte)
{
	struct program_run done;
	size_t size_bytes;
	char *text = kept(scratch_read("fixtures/recorded/opt/sample/sample.dll", &size_bytes));

	done = RUN(NULL, "--root", root, pid, "fixtures/recorded/opt/sample/sample.dll");
	cr_expect_eq(done.out_bytes, size_bytes);
	cr_expect(!memcmp(done.out, text, size_bytes));
	program_run_deinit(&done);
}

Test(symbolize, reads_files_one_after_the_other)
{
	char *one = kept(scratch_path(scratch, "one"));
	char *other = kept(scratch_path(scratch, "other"));

	scratch_write(one, "a", 1);
	scratch_write(other, "b\n", 2);
	expect_out(RUN("c", one, "-", other), 0, "acb\n");
	/* A file that does not exist does not stop the others. */
	expect_out(RUN(NULL, one, "/nowhere/x", other), 3, "ab\n");
	expect_out(RUN(NULL, "/nowhere/x"), 1, "");
}

Test(symbolize, shortens_names_and_leaves_tiers_out)
{
	char *name, *in;
	uint64_t address = jitted_method(&name);
	struct program_run done;

	in = format("0x%" PRIx64 "\n", address);
	done = RUN(in, "--names=short", "--tiers=strip", pid, "--root", root);
	cr_expect(strstr(done.out, "::") && !strchr(done.out, '(') && !strchr(done.out, ' ') &&
			  !strstr(done.out, "[Optimized]"),
		  "%s of %s", done.out, name);
	program_run_deinit(&done);
}

/* ---- numbers that may be an address or an offset --------------------------------------- */

#define LARGE "[unknown] (/memfd:doublemapper (deleted))"

/* A large program at a low address: 0x500000 is inside it, and so is the offset 0x500000, at
 * 0x900000. */
static void expect_large(const char *in, const char *out)
{
	static const struct proc_tree_process process = {
		.pid = 5,
		.maps = "00400000-00c00000 r-xp 00000000 00:01 77 /memfd:doublemapper (deleted)\n",
	};
	struct proc_tree tree;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &process);
	proc_tree_write_text(&tree, "/tmp/perf-5.map",
			     "500000 10 at_5\n900000 10 at_9\na00000 10 at_a\n");
	expect_out(RUN(in, "--root", tree.root), 0, out);
	proc_tree_destroy(&tree);
}

Test(symbolize, takes_a_number_for_an_offset_where_others_are_offsets)
{
	/* 0x100004 is not an address, so the other callers of the same perf are offsets too. */
	expect_large("a 5/5 1.000001: x: \n\t500000 " LARGE "\n\t100004 " LARGE "\n",
		     "a 5/5 1.000001: x: \n\t500000 at_9+0x0 (/memfd:doublemapper (deleted))\n"
		     "\t100004 at_5+0x4 (/memfd:doublemapper (deleted))\n");
}

Test(symbolize, takes_a_number_for_an_address_where_others_are_addresses)
{
	expect_large("a 5/5 1.000001: x: \n\ta00000 " LARGE "\n\n"
		     "a 5/5 1.000002: x: \n\t500000 " LARGE "\n",
		     "a 5/5 1.000001: x: \n\ta00000 at_a+0x0 (/memfd:doublemapper (deleted))\n\n"
		     "a 5/5 1.000002: x: \n\t500000 at_5+0x0 (/memfd:doublemapper (deleted))\n");
}

Test(symbolize, leaves_a_number_alone_that_nothing_explains)
{
	static const char alone[] = "a 5/5 1.000001: x: \n\t500000 " LARGE "\n";

	expect_large(alone, alone);
	expect_large("a 5/5 1.000001: x: \n\ta00000 " LARGE "\n\t100004 " LARGE "\n\t500004 " LARGE
		     "\n",
		     "a 5/5 1.000001: x: \n\ta00000 at_a+0x0 (/memfd:doublemapper (deleted))\n"
		     "\t100004 at_5+0x4 (/memfd:doublemapper (deleted))\n\t500004 " LARGE "\n");
}

/* perf 6.1 prints an address here, and offsets in chains. */
Test(symbolize, learns_of_samples_without_callers_by_themselves)
{
	static const char chain[] = "a 5/5 1.000001: x: \n\t100004 " LARGE "\n\n";
	static const char named_chain[] =
		"a 5/5 1.000001: x: \n\t100004 at_5+0x4 (/memfd:doublemapper (deleted))\n\n";
	static const char head[] = "a 5/5 1.000002: x:  500000 ";

	expect_large(format("%s%s" LARGE "\n", chain, head),
		     format("%s%s" LARGE "\n", named_chain, head));
	expect_large(format("%s%s" LARGE "\na 5/5 1.000003: x:  a00000 " LARGE "\n", chain, head),
		     format("%s%sat_5+0x0 (/memfd:doublemapper (deleted))\n"
			    "a 5/5 1.000003: x:  a00000 at_a+0x0 (/memfd:doublemapper (deleted))\n",
			    named_chain, head));
}
