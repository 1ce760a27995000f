/* SPDX-License-Identifier: MIT */
#include "libsym/format/linux/proc_text.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* A line as Linux 6.18 wrote it, up to field 30. */
static const char plain_stat[] =
	"4242 (dotnet) S 1 4242 4242 34816 4242 4194304 9731 0 12 0 30 8 0 0 20 0 7 0 388308 "
	"274877906944 6321 18446744073709551615 94862000000000 94862000070000 140720308123456 0 "
	"0\n";

static bool parse_stat(const char *text, struct proc_stat *ret)
{
	return proc_text_parse_stat(text, strlen(text), ret);
}

Test(proc_text, reads_start_time_and_state_of_stat)
{
	struct proc_stat stat;

	cr_assert(parse_stat(plain_stat, &stat));
	cr_assert_eq(stat.comm_bytes, 6);
	cr_assert_eq(memcmp(stat.comm, "dotnet", 6), 0);
	cr_assert_eq(stat.state, 'S');
	cr_assert_eq(stat.start_time_ticks, 388308);
	cr_assert_eq(stat.code_start, 94862000000000);
	cr_assert_eq(stat.stack_start, 140720308123456);
}

Test(proc_text, finds_the_end_of_a_comm_that_looks_like_fields)
{
	static const char text[] =
		"7 (a) R 1 (b\n c) Z 1 7 7 0 -1 0 1 0 0 0 5 3 0 0 20 0 7 0 99 1 2 3";
	struct proc_stat stat;

	cr_assert(parse_stat(text, &stat));
	cr_assert_eq(stat.comm_bytes, strlen("a) R 1 (b\n c"));
	cr_assert_eq(stat.state, 'Z');
	cr_assert_eq(stat.start_time_ticks, 99);
	cr_assert_eq(stat.stack_start, 0, "a line that ends early has no marks");
}

Test(proc_text, accepts_an_empty_comm)
{
	struct proc_stat stat;

	cr_assert(parse_stat("7 () R 1 7 7 0 -1 0 1 0 0 0 5 3 0 0 20 0 7 0 99 1 2 3\n", &stat));
	cr_assert_eq(stat.comm_bytes, 0);
}

Test(proc_text, rejects_stat_truncated_before_its_start_time)
{
	const char *start_time = strstr(plain_stat, "388308");
	size_t length;

	for (length = 0; length <= (size_t)(start_time - plain_stat); length++) {
		char *cut = malloc(length + 1);
		struct proc_stat stat;

		/* A block of the exact size, so that a sanitizer detects a read past the end. */
		cr_assert_not_null(cut);
		memcpy(cut, plain_stat, length);
		cr_expect_not(proc_text_parse_stat(cut, length, &stat), "%zu bytes", length);
		free(cut);
	}
}

Test(proc_text, rejects_a_malformed_start_time)
{
	struct proc_stat stat;

	cr_expect_not(
		parse_stat("7 (a) R 1 7 7 0 -1 0 1 0 0 0 5 3 0 0 20 0 7 0 9x9 1 2 3\n", &stat));
	cr_expect_not(
		parse_stat("7 (a) R 1 7 7 0 -1 0 1 0 0 0 5 3 0 0 20 0 7 0 -9 1 2 3\n", &stat));
	cr_expect_not(parse_stat("7 (a) R 1 7 7 0 -1 0 1 0 0 0 5 3 0 0 20 0 7 0 "
				 "18446744073709551616 1 2 3\n",
				 &stat),
		      "one more than fits into 64 bits");
	cr_expect_not(parse_stat("7 a R 1 7 7 0 -1 0 1 0 0 0 5 3 0 0 20 0 7 0 99 1 2 3\n", &stat));
}

static bool parse_status(const char *text, struct proc_status *ret)
{
	return proc_text_parse_status(text, strlen(text), ret);
}

Test(proc_text, reads_process_effective_ids_and_innermost_pid)
{
	struct proc_status status;

	cr_assert(parse_status("Name:\tx\nTgid:\t500\nPid:\t502\nPPid:\t499\nUid:\t1\t2\t3\t4\n"
			       "Gid:\t5\t6\t7\t8\nNStgid:\t500\t41\t1\nNSpid:\t502\t43\t3\n",
			       &status));
	cr_expect_eq(status.process_id, 500);
	cr_expect_eq(status.parent_process_id, 499);
	cr_expect_eq(status.namespace_process_id, 1);
	cr_expect_eq(status.namespace_depth, 3);
	cr_expect_eq(status.uid, 2);
	cr_expect_eq(status.gid, 6);
}

Test(proc_text, uses_the_process_id_without_nstgid)
{
	struct proc_status status;

	cr_assert(parse_status("Tgid:\t500\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0", &status));
	cr_expect_eq(status.namespace_process_id, 500);
	cr_expect_eq(status.namespace_depth, 0);
	cr_expect_eq(status.parent_process_id, 0);
}

Test(proc_text, is_not_misled_by_a_name_that_imitates_a_line)
{
	struct proc_status status;

	/* The kernel writes a newline in a name as \n, so a line cannot be forged in it. */
	cr_assert(parse_status("Name:\tTgid:\t9\\nTgid:\t9\nTgid:\t500\nUid:\t0\t0\t0\t0\n"
			       "Gid:\t0\t0\t0\t0\n",
			       &status));
	cr_expect_eq(status.process_id, 500);
}

/* As Linux shows a task that has released its memory and is not a zombie yet. */
Test(proc_text, recognises_a_task_without_memory)
{
	struct proc_status status;

	cr_assert(parse_status("State:\tR (running)\nTgid:\t500\nUid:\t0\t0\t0\t0\n"
			       "Gid:\t0\t0\t0\t0\nThreads:\t2\n",
			       &status));
	cr_expect_not(status.has_memory);
	cr_assert(parse_status("Tgid:\t500\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n"
			       "VmPeak:\t    9 kB\nVmSize:\t    9 kB\nThreads:\t2\n",
			       &status));
	cr_expect(status.has_memory);
}

Test(proc_text, rejects_status_without_an_identity)
{
	struct proc_status status;

	cr_expect_not(parse_status("", &status));
	cr_expect_not(parse_status("Tgid:\t0\nUid:\t0\t0\nGid:\t0\t0\n", &status));
	cr_expect_not(parse_status("Tgid:\t4294967297\nUid:\t0\t0\nGid:\t0\t0\n", &status));
	cr_expect_not(parse_status("Tgid:\t5\nUid:\t0\nGid:\t0\t0\n", &status));
	cr_expect_not(parse_status("Tgid:\t5\nUid:\t0\t4294967296\nGid:\t0\t0\n", &status));
	cr_expect_not(parse_status("Tgid:\t5\nUid:\t0\t0\n", &status));
}

Test(proc_text, finds_variables_by_full_name)
{
	static const char text[] = "XTMPDIR=/no\0TMPDIRX=/no\0TMPDIR=\0TMPDIR=/a=b c\0LAST=cut";
	size_t size_bytes = sizeof(text) - 1;

	cr_expect_str_eq(proc_text_find_environ(text, size_bytes, "TMPDIR"), "/a=b c");
	cr_expect_null(proc_text_find_environ(text, size_bytes, "TMP"));
	cr_expect_null(proc_text_find_environ(text, size_bytes, "LAST"),
		       "a value that was cut is none");
	cr_expect_null(proc_text_find_environ(text, 0, "TMPDIR"));
}

Test(proc_text, reads_the_flags_of_a_descriptor_as_octal)
{
	static const char text[] = "pos:\t0\nflags:\t02100001\nmnt_id:\t29\nino:\t1166\n";
	uint64_t flags;

	cr_assert(proc_text_fdinfo_flags(text, sizeof(text) - 1, &flags));
	cr_expect_eq(flags, 02100001);
	cr_expect_not(proc_text_fdinfo_flags("flags:\t8\n", 9, &flags), "8 is no octal digit");
	cr_expect_not(proc_text_fdinfo_flags("pos:\t0\n", 7, &flags));
}

Test(proc_text, reads_the_boot_time)
{
	int64_t seconds;

	cr_assert(proc_text_boot_time("cpu 1\nbtime 1795253672\n", 23, &seconds));
	cr_expect_eq(seconds, 1795253672);
	cr_expect_not(proc_text_boot_time("btime 9223372036854775807\n", 26, &seconds),
		      "it would not fit when counted in ns");
	cr_expect_not(proc_text_boot_time("xbtime 5\n", 9, &seconds));
}

Test(proc_text, accepts_only_plain_decimals_as_process_ids)
{
	static const char *const none[] = { "",   "0",   "01",   "+1",         "-1", "1 ",
					    "1x", "0x1", "self", "2147483648", " 1", "1\n" };
	int32_t id = 0;
	size_t i;

	cr_expect(proc_text_parse_id("1", &id) && id == 1);
	cr_expect(proc_text_parse_id("2147483647", &id) && id == 2147483647);
	for (i = 0; i < sizeof(none) / sizeof(*none); i++)
		cr_expect_not(proc_text_parse_id(none[i], &id), "\"%s\"", none[i]);
}

Test(proc_text, reads_a_process_id_in_a_file_name)
{
	static const char *const none[] = { "",
					    "jit-.dump",
					    "jit-5",
					    "jit-5.dump2",
					    "xjit-5.dump",
					    "jit-05.dump",
					    "jit--5.dump",
					    "jit-5 .dump",
					    "jit-99999999999999.dump",
					    "jit.dump",
					    "jit-2147483648.dump" };
	int32_t id = 0;

	cr_expect(proc_text_parse_file_name("jit-5.dump", "jit-", ".dump", &id) && id == 5);
	cr_expect(proc_text_parse_file_name("jit-2147483647.dump", "jit-", ".dump", &id) &&
		  id == 2147483647);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		cr_expect_not(proc_text_parse_file_name(none[i], "jit-", ".dump", &id), "\"%s\"",
			      none[i]);
}
