/* SPDX-License-Identifier: MIT */
/* Unfinished work is removed, however the program ends. */
#include "mapgen/cli/work_directory.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/program.h"

static char *scratch, *directory;

static void set_up(void)
{
	scratch = scratch_create();
	directory = scratch_path(scratch, "work.XXXXXX");
}

static void tear_down(void)
{
	free(directory);
	scratch_remove(scratch);
}

TestSuite(work_directory, .init = set_up, .fini = tear_down);

static void put(const char *name)
{
	char *path = scratch_path(directory, name);

	scratch_write(path, "x", 1);
	free(path);
}

static void fill(void)
{
	char *inner;

	cr_assert(work_directory_make(directory));
	inner = scratch_path(directory, "kcore_dir");
	cr_assert_eq(mkdir(inner, 0700), 0);
	free(inner);
	put("data");
	put("kcore_dir/kallsyms");
}

static bool is_empty(void)
{
	return rmdir(scratch) == 0 && mkdir(scratch, 0700) == 0;
}

/* How a child ends that gets a signal in the middle of its work. */
static int status_after(int number, bool is_ignored, bool is_kept)
{
	pid_t child = fork();
	int status;

	cr_assert(child >= 0);
	if (!child) {
		signal(number, is_ignored ? SIG_IGN : SIG_DFL);
		fill();
		if (is_kept)
			work_directory_keep();
		raise(number);
		_exit(0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return status;
}

Test(work_directory, is_removed_with_what_is_in_it)
{
	fill();
	work_directory_remove(directory);
	cr_expect(is_empty());
}

Test(work_directory, is_removed_by_a_signal_that_ends_the_program)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		int status = status_after(numbers[i], false, false);

		cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == numbers[i]);
		cr_expect(is_empty());
	}
}

Test(work_directory, stays_when_the_signal_is_ignored)
{
	cr_expect_eq(status_after(SIGHUP, true, false), 0);
	cr_expect_not(is_empty());
}

Test(work_directory, stays_when_it_has_become_what_it_was_to_be)
{
	cr_expect(WIFSIGNALED(status_after(SIGTERM, false, true)));
	cr_expect_not(is_empty());
}
