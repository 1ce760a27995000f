/* SPDX-License-Identifier: MIT */
/* The command line: what is accepted, what is refused, and with which exit code. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/options.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/program.h"

static char *scratch;

static void set_up(void)
{
	scratch = scratch_create();
}

static void tear_down(void)
{
	scratch_remove(scratch);
}

TestSuite(options, .init = set_up, .fini = tear_down);

static struct program_run run(const char *const *arguments)
{
	return program_run(scratch, NULL, arguments);
}

#define RUN(...) run((const char *const[]){ __VA_ARGS__ __VA_OPT__(, ) NULL })

/* One line on standard error with the program's name, nothing on standard output. */
static void expect_refused(struct program_run done, const char *word)
{
	cr_expect_eq(done.exit_code, 2, "exit code %d", done.exit_code);
	cr_expect_eq(count_lines(done.err), 1, "%s", done.err);
	cr_expect(!strncmp(done.err, "dotnet-mapgen: ", 15), "%s", done.err);
	cr_expect(strstr(done.err, word), "'%s' is not in: %s", word, done.err);
	cr_expect_eq(done.out_bytes, 0);
	program_run_deinit(&done);
}

Test(options, version_is_that_of_the_library)
{
	static const char *const spellings[] = { "--version", "-V" };

	for (size_t i = 0; i < 2; i++) {
		struct program_run done = RUN(spellings[i]);
		char *text;

		cr_assert(asprintf(&text, "dotnet-mapgen %s\n", sym_version()) > 0);
		cr_expect_eq(done.exit_code, 0);
		cr_expect_str_eq(done.out, text);
		free(text);
		program_run_deinit(&done);
	}
}

Test(options, help_of_the_program_names_every_command)
{
	struct program_run done = RUN("--help");

	cr_expect_eq(done.exit_code, 0);
	cr_expect(strstr(done.out, "\n  list "));
	cr_expect(strstr(done.out, "\n  generate "));
	cr_expect(strstr(done.out, "\n  merge "));
	cr_expect(strstr(done.out, "\n  watch "));
	cr_expect(strstr(done.out, "\n  resolve "));
	program_run_deinit(&done);
}

Test(options, every_command_has_help_and_takes_a_pid_root_and_json)
{
	static const char *const commands[] = { "list", "generate", "merge", "watch", "resolve" };

	for (size_t i = 0; i < 5; i++) {
		struct program_run done = RUN(commands[i], "--help");

		cr_expect_eq(done.exit_code, 0);
		cr_expect(strstr(done.out, "-p, --pid=PID"), "%s", commands[i]);
		cr_expect(strstr(done.out, "--root=DIR"), "%s", commands[i]);
		cr_expect(strstr(done.out, "--json"), "%s", commands[i]);
		cr_expect_eq(strlen(done.err), 0);
		program_run_deinit(&done);
	}
}

Test(options, without_a_command_the_help_goes_to_standard_error)
{
	struct program_run done = RUN(), help = RUN("--help");

	cr_expect_eq(done.exit_code, 2);
	cr_expect_str_eq(done.err, help.out);
	cr_expect_eq(done.out_bytes, 0);
	program_run_deinit(&done);
	program_run_deinit(&help);
}

Test(options, help_is_a_command)
{
	struct program_run done = RUN("help"), overview = RUN("--help");
	struct program_run of_merge = RUN("help", "merge"), merge = RUN("merge", "--help");

	cr_expect_eq(done.exit_code, 0);
	cr_expect_str_eq(done.out, overview.out);
	cr_expect_eq(of_merge.exit_code, 0);
	cr_expect_str_eq(of_merge.out, merge.out);
	cr_expect(strstr(merge.out, "\nExamples:\n  dotnet-mapgen merge "), "%s", merge.out);
	expect_refused(RUN("help", "mrege"), "did you mean 'merge'?");
	program_run_deinit(&done);
	program_run_deinit(&overview);
	program_run_deinit(&of_merge);
	program_run_deinit(&merge);
}

Test(options, an_unknown_command_is_refused)
{
	expect_refused(RUN("frobnicate"), "'frobnicate' is not a command; see");
	expect_refused(RUN("mrege"), "'mrege' is not a command; did you mean 'merge'?");
	expect_refused(RUN("symbols"), "did you mean 'fetch-symbols'?");
}

Test(options, a_mistyped_option_is_answered_with_the_nearest)
{
	expect_refused(RUN("merge", "--nams=short", "1"), "did you mean --names?");
	expect_refused(RUN("standin", "--debug-three=x", "list"), "did you mean --debug-tree?");
	/* an option of another command is no suggestion */
	expect_refused(RUN("list", "--undoo"), "see dotnet-mapgen list --help");
}

Test(options, a_pid_in_place_of_a_file_and_a_file_in_place_of_a_pid_are_explained)
{
	char *path = scratch_path(scratch, "perf.data");

	scratch_write(path, "x", 1);
	expect_refused(RUN("perf-fix", "4194305"), "4194305 is a PID (record -p 4194305");
	expect_refused(RUN("merge", path), "is a file");
	expect_refused(RUN("info", path), "info takes a PID");
	free(path);
}

/* Starts a copy of sleep whose name no other process has; the caller ends it. */
static pid_t start_named(const char *path)
{
	int ready[2];
	char byte;
	pid_t pid;

	cr_assert(!pipe2(ready, O_CLOEXEC));
	pid = fork();
	cr_assert(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl(path, path, "600", NULL);
		_exit(127);
	}
	close(ready[1]);
	/* The pipe is closed when the copy has replaced this program. */
	cr_assert_eq(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return pid;
}

static void end_named(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(options, a_process_may_be_given_by_its_name)
{
	char name[64], *path, *command;
	struct program_run by_name, by_pid;
	pid_t first, second;

	snprintf(name, sizeof(name), "sleeper-of-%d", getpid());
	path = scratch_path(scratch, name);
	cr_assert(asprintf(&command, "cp /bin/sleep '%s'", path) > 0 && !system(command));
	first = start_named(path);
	by_name = RUN("resolve", name, "0x10");
	cr_expect(strstr(by_name.out, "not mapped"), "%s%s", by_name.out, by_name.err);
	by_pid = RUN("resolve", "-p", name, "0x10");
	cr_expect_str_eq(by_pid.out, by_name.out);
	program_run_deinit(&by_name);
	program_run_deinit(&by_pid);
	by_name = RUN("info", name);
	cr_expect(strstr(by_name.err, "hosts no .NET runtime"), "%s", by_name.err);
	program_run_deinit(&by_name);
	second = start_named(path);
	expect_refused(RUN("merge", name), "2 processes are called");
	end_named(first);
	end_named(second);
	free(command);
	free(path);
}

Test(options, unknown_options_and_those_of_other_commands_are_refused)
{
	expect_refused(RUN("list", "--no-such-option"), "--no-such-option");
	expect_refused(RUN("list", "--undo"), "--undo");
	expect_refused(RUN("resolve", "-o", "x", "1"), "-o");
	expect_refused(RUN("merge", "--json=yes", "1"), "'--json=yes' takes no argument");
	expect_refused(RUN("symbolize", "-xv", "1"), "'-x' is not an option");
	expect_refused(RUN("symbolize", "-vx"), "'-x' is not an option");
}

Test(options, an_option_without_its_argument_is_refused)
{
	expect_refused(RUN("merge", "1", "--mode"), "--mode");
	expect_refused(RUN("merge", "-p"), "-p");
	expect_refused(RUN("generate", "--output=", "x"), "--output");
}

Test(options, words_that_an_option_does_not_know_are_refused)
{
	expect_refused(RUN("merge", "--mode=sideways", "1"), "append|replace");
	expect_refused(RUN("merge", "--mode=", "1"), "append|replace");
	expect_refused(RUN("merge", "--mode=appen", "1"), "append|replace");
	expect_refused(RUN("resolve", "--names=long", "1"), "full|short");
	expect_refused(RUN("resolve", "--tiers=0", "1"), "keep|strip");
}

Test(options, what_is_no_process_id_is_refused)
{
	static const char *const bad[] = { "0", "-1", "+1",         "1x",
					   "",  " 1", "2147483648", "99999999999999999999" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_refused(RUN("merge", "-p", bad[i]), "process id");
	expect_refused(RUN("list", "twelve"), "twelve");
	expect_refused(RUN("merge", "twelve"), "'twelve' is neither a process id nor the name");
	expect_refused(RUN("merge", "--root=/nonexistent", "-o", "x", "twelve"), "twelve");
}

Test(options, commands_without_what_they_need_are_refused)
{
	expect_refused(RUN("generate"), "PID, files or directories");
	expect_refused(RUN("merge"), "needs a PID");
	expect_refused(RUN("info"), "needs a PID");
	expect_refused(RUN("resolve"), "PID");
	expect_refused(RUN("merge", "1", "2"), "one PID");
	expect_refused(RUN("list", "1", "2"), "one PID");
	expect_refused(RUN("info", "1", "2"), "one PID");
	expect_refused(RUN("watch", "1", "2"), "one PID");
	expect_refused(RUN("standin", "list", "file"), "no operands");
}

Test(options, options_that_contradict_each_other_are_refused)
{
	expect_refused(RUN("merge", "1", "-o", "x", "--mode=append"), "--mode");
	expect_refused(RUN("merge", "1", "-o", "x", "--undo"), "--undo");
	expect_refused(RUN("merge", "1", "--undo", "--mode=replace"), "--undo");
	expect_refused(RUN("merge", "1", "-o", "-", "--json"), "--json");
	expect_refused(RUN("merge", "1", "--root", "/x"), "--output");
	expect_refused(RUN("generate", "-p", "1", "x.dll"), "not both");
	expect_refused(RUN("generate", "--root", "/", "x.dll"), "--root");
	expect_refused(RUN("perf-fix", "--in-place", "-o", "x", "y"), "--in-place");
	expect_refused(RUN("perf-fix", "--undo", "-o", "x", "y"), "--undo");
	expect_refused(RUN("perf-fix", "--undo", "-p", "1", "y"), "--undo");
}

Test(options, a_directory_to_look_in_that_is_not_there_is_said)
{
	static const char *const options[] = { "--maps", "--debug-dir" };

	for (size_t i = 0; i < 2; i++) {
		struct program_run done =
			RUN("merge", "2147483647", options[i], "/nonexistent/directory");

		cr_expect(strstr(done.err, options[i]) &&
				  strstr(done.err, "/nonexistent/directory: No such"),
			  "%s", done.err);
		cr_expect_eq(count_lines(done.err), 2, "%s", done.err);
		program_run_deinit(&done);
	}
}

Test(options, a_process_that_does_not_exist_is_one_line_and_exit_code_1)
{
	static const char *const commands[] = { "list", "generate", "merge", "watch", "resolve" };

	for (size_t i = 0; i < 5; i++) {
		/* Beyond the largest pid_max. */
		struct program_run done = RUN(commands[i], "4194305", i == 4 ? "0x1000" : NULL);

		cr_expect_eq(done.exit_code, 1, "%s: %d", commands[i], done.exit_code);
		cr_expect_eq(count_lines(done.err), 1, "%s: %s", commands[i], done.err);
		cr_expect(strstr(done.err, "4194305"), "%s: %s", commands[i], done.err);
		program_run_deinit(&done);
	}
}

Test(options, operands_beside_a_core_file_are_addresses)
{
	struct program_run done = RUN("resolve", "--core=/nonexistent", "401136");

	cr_expect_eq(done.exit_code, 1, "%s", done.err);
	cr_expect(strstr(done.err, "/nonexistent"), "%s", done.err);
	program_run_deinit(&done);
}

/* The sanitizer's library cannot be loaded into a program that was built without it. */
#ifndef __SANITIZE_ADDRESS__
Test(options, what_bcc_is_told_stands_over_the_environment)
{
	struct program_run done;

	setenv("LIBSYM_BCC_NAMES", "short", 1);
	setenv("LIBSYM_BCC_JIT", "none", 1);
	done = RUN("bcc", "--names=full", "--tiers=strip", "--", "env");
	cr_expect_eq(done.exit_code, 0, "%s", done.err);
	cr_expect_not(strstr(done.out, "LIBSYM_BCC_NAMES"), "%s", done.out);
	cr_expect_not(strstr(done.out, "LIBSYM_BCC_JIT"), "%s", done.out);
	cr_expect(strstr(done.out, "LIBSYM_BCC_TIERS=strip\n"), "%s", done.out);
	program_run_deinit(&done);
}

static void expect_folded(struct program_run done, bool expected)
{
	cr_expect_eq(strstr(done.out, "LIBSYM_BCC_FOLDED=1\n") != NULL, expected, "%s", done.out);
	program_run_deinit(&done);
}

Test(options, what_bcc_starts_is_told_that_its_stacks_are_folded)
{
	setenv("LIBSYM_BCC_FOLDED", "1", 1);
	expect_folded(RUN("bcc", "--", "sh", "-c", "env", "profile", "-F", "99", "10"), false);
	expect_folded(RUN("bcc", "--", "sh", "-c", "env", "profile", "-f"), true);
	expect_folded(RUN("bcc", "--", "sh", "-c", "env", "profile", "-Uf", "10"), true);
	expect_folded(RUN("bcc", "--", "sh", "-c", "env", "profile", "--folded"), true);
}
#endif

Test(options, a_full_disk_is_a_failure)
{
	char *command, *own = scratch_path(scratch, "");
	int status;

	/* The shell connects the program's standard output to /dev/full. */
	cr_assert(asprintf(&command,
			   "\"$(dirname \"$(readlink /proc/%d/exe)\")/../dotnet-mapgen\" --version "
			   "> /dev/full 2> '%serr'",
			   getpid(), own) > 0);
	status = system(command);
	cr_expect_eq(WEXITSTATUS(status), 1);
	free(command);
	free(own);
}

Test(options, seconds_are_a_number_within_bounds)
{
	static const char *const bad[] = { "0", "-1", "1s", "", "nan", "0.01", "1e99", "0x10" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		expect_refused(RUN("watch", "--for", bad[i], "1"), "--for");
		expect_refused(RUN("watch", "--interval", bad[i], "1"), "--interval");
	}
	expect_refused(RUN("merge", "--enable-perfmap", "--undo", "1"), "--undo");
	expect_refused(RUN("resolve", "--core=x", "-p", "1", "0x10"), "--core");
	expect_refused(RUN("watch"), "PID");
	expect_refused(RUN("watch", "--root=/", "1"), "recorded");
	expect_refused(RUN("watch", "-o", "-", "1"), "--output=-");
	expect_refused(RUN("watch", "-o", "x", "--mode=append", "1"), "--mode");
	expect_refused(RUN("merge", "--for", "1", "1"), "--for");
}

Test(options, want_of_memory_is_no_wrong_command_line)
{
	static const struct command command = { .name = "resolve", .id = COMMAND_RESOLVE };
	char name[] = "resolve", one[] = "--debug-dir=/tmp", two[] = "--debug-dir=/usr";
	char *words[] = { name, one, two, NULL };
	struct options options;

	for (size_t i = 0; i < 2; i++) {
		alloc_fail_after(i);
		cr_expect_eq(options_parse(&command, 3, words, &options), OPTIONS_FAILED);
		cr_expect(alloc_fail_stop());
		options_deinit(&options);
	}
	cr_expect_eq(options_parse(&command, 3, words, &options), OPTIONS_RUN);
	cr_expect_eq(options.debug_dirs.count, 2);
	options_deinit(&options);
}
