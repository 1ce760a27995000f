/* SPDX-License-Identifier: MIT */
/*
 * merge on real processes that look like a runtime: which file gets which lines, what is not
 * changed, and what a kill leaves.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/fake_runtime.h"
#include "tests/support/program.h"
#include "tests/support/waiting.h"

static char *scratch;
static struct fake_runtime *runtime;

static void set_up(void)
{
	scratch = scratch_create();
}

static void tear_down(void)
{
	if (runtime)
		fake_runtime_stop(runtime);
	runtime = NULL;
	scratch_remove(scratch);
}

TestSuite(merge, .init = set_up, .fini = tear_down);

static const char jitted[] = "0x10000 40 void [app] Some.Type::Jitted(int32)[QuickJitted]\n";
static const char jitted_later[] = "0x20000 20 void [app] Some.Type::Later()[OptimizedTier1]\n";
static const char later_anywhere[] = " 20 void [app] Some.Type::Later()[OptimizedTier1]\n";

static struct program_run run(const char *const *arguments)
{
	return program_run(scratch, NULL, arguments);
}

#define RUN(...) run((const char *const[]){ __VA_ARGS__, NULL })

static void expect_code(struct program_run done, int code)
{
	cr_expect_eq(done.exit_code, code, "exit code %d, signal %d: %s", done.exit_code,
		     done.signal, done.err);
	program_run_deinit(&done);
}

static void expect_said(struct program_run done, int code, const char *words)
{
	cr_expect(strstr(done.err, words), "'%s' is not in: %s", words, done.err);
	expect_code(done, code);
}

static struct stat status_of(const char *path)
{
	struct stat status = { 0 };

	cr_expect(!lstat(path, &status), "%s", path);
	return status;
}

static size_t count_of(const char *text, const char *words)
{
	size_t count = 0;

	for (; (text = strstr(text, words)); text += strlen(words))
		count++;
	return count;
}

static char *map_text(void)
{
	char *text = scratch_read(runtime->map_path, NULL);

	cr_assert(text, "%s", runtime->map_path);
	return text;
}

/* Sorted, disjoint, no 0x, a newline at the end: the form that we write. */
static void expect_our_form(const char *text)
{
	uint64_t end = 0;

	cr_expect(*text && text[strlen(text) - 1] == '\n');
	while (*text) {
		uint64_t start, size_bytes;
		int name = 0;

		cr_assert_eq(sscanf(text, "%" SCNx64 " %" SCNx64 " %n", &start, &size_bytes, &name),
			     2);
		cr_assert(name > 0 && text[0] != '0' && size_bytes > 0 && start >= end, "%.80s",
			  text);
		end = start + size_bytes;
		text = strchr(text, '\n') + 1;
	}
}

/* The line of a method in the map: its row of the relative map, at its load address. */
static char *expected_line(const char *method)
{
	char *directory = scratch_path(scratch, "relative");
	char *text, *found, *line, *path;
	uint64_t rva;
	int rest;

	expect_code(RUN("generate", runtime->image_path, "-o", directory), 0);
	path = scratch_only_file(directory, ".map");
	text = scratch_read(path, NULL);
	cr_assert(text, "%s", path);
	found = strstr(text, method);
	cr_assert(found, "%s", method);
	while (found > text && found[-1] != '\n')
		found--;
	cr_assert_eq(sscanf(found, "%" SCNx64 " %n", &rva, &rest), 1);
	cr_assert(asprintf(&line, "%" PRIx64 " %.*s[PreJIT]\n", runtime->load_base + rva,
			   (int)strcspn(found + rest, "\n"), found + rest) > 0);
	free(text);
	free(path);
	free(directory);
	return line;
}

Test(merge, makes_a_map_of_precompiled_methods_at_their_addresses)
{
	struct program_run done;
	char *line, *text;

	runtime = fake_runtime_start(scratch, false);
	done = RUN("merge", runtime->pid_text, "--jit=none");
	cr_expect(!strncmp(done.out, "map merging: 1 images, ", 23), "%s", done.out);
	expect_code(done, 0);
	text = map_text();
	line = expected_line(" int32 [sample] Sample.Program::Main(");
	cr_expect(strstr(text, line), "%s is not in the map", line);
	expect_our_form(text);
	cr_expect_eq(status_of(runtime->map_path).st_mode, (mode_t)(S_IFREG | 0644));
	free(line);
	free(text);
}

Test(merge, writes_nothing_the_second_time)
{
	struct stat first, second;

	runtime = fake_runtime_start(scratch, false);
	expect_code(RUN("merge", runtime->pid_text, "--jit=none"), 0);
	first = status_of(runtime->map_path);
	expect_code(RUN("merge", "-p", runtime->pid_text, "--jit=none"), 0);
	second = status_of(runtime->map_path);
	cr_expect_eq(first.st_ino, second.st_ino);
	cr_expect(!memcmp(&first.st_mtim, &second.st_mtim, sizeof(first.st_mtim)));
	cr_expect(!memcmp(&first.st_ctim, &second.st_ctim, sizeof(first.st_ctim)));
}

Test(merge, names_and_tiers_in_the_form_asked_for)
{
	char *text;

	runtime = fake_runtime_start(scratch, false);
	expect_code(RUN("merge", runtime->pid_text, "--jit=none", "--names=short", "--tiers=strip"),
		    0);
	text = map_text();
	cr_expect(strstr(text, " Sample.Program::Main\n"));
	cr_expect(!strstr(text, "[PreJIT]"));
	free(text);
	expect_code(RUN("merge", runtime->pid_text, "--jit=none", "--names=short"), 0);
	text = map_text();
	cr_expect(strstr(text, " Sample.Program::Main[PreJIT]\n"));
	free(text);
}

Test(merge, appends_to_the_runtimes_file_and_both_go_on)
{
	struct stat before;
	char *text, *ours;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	before = status_of(runtime->map_path);
	expect_said(RUN("merge", runtime->pid_text), 0, "O_APPEND");
	fake_runtime_write(runtime, jitted_later);
	cr_expect_eq(status_of(runtime->map_path).st_ino, before.st_ino);
	text = map_text();
	cr_expect(!strncmp(text, jitted, strlen(jitted)));
	cr_expect_str_eq(text + strlen(text) - strlen(jitted_later), jitted_later);
	ours = expected_line(" int32 [sample] Sample.Program::Main(");
	cr_expect_eq(count_of(text, ours), 1);
	free(ours);
	free(text);
}

Test(merge, appends_each_line_once)
{
	struct stat first, second;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	expect_code(RUN("merge", runtime->pid_text), 0);
	first = status_of(runtime->map_path);
	expect_code(RUN("merge", runtime->pid_text), 0);
	second = status_of(runtime->map_path);
	cr_expect_eq(first.st_size, second.st_size);
	cr_expect(!memcmp(&first.st_mtim, &second.st_mtim, sizeof(first.st_mtim)));
}

Test(merge, appends_again_what_the_runtime_has_lost)
{
	char *text, *ours;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	expect_code(RUN("merge", runtime->pid_text), 0);
	/* The runtime starts a new map when it is enabled again. */
	cr_assert(!truncate(runtime->map_path, 0));
	fake_runtime_write(runtime, jitted);
	expect_code(RUN("merge", runtime->pid_text), 0);
	text = map_text();
	ours = expected_line(" int32 [sample] Sample.Program::Main(");
	cr_expect_eq(count_of(text, ours), 1);
	cr_expect_eq(count_of(text, jitted), 1);
	free(ours);
	free(text);
}

Test(merge, does_not_make_a_line_of_half_a_line)
{
	char *text;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, "0x10000 40 void [app] Some.Type::Half");
	expect_said(RUN("merge", runtime->pid_text, "--mode=append"), 1, "ends within a line");
	text = map_text();
	cr_expect_str_eq(text, "0x10000 40 void [app] Some.Type::Half");
	free(text);
	expect_said(RUN("merge", runtime->pid_text), 0, "replaced instead");
	text = map_text();
	cr_expect_null(strstr(text, "Some.Type::Half"), "%.200s", text);
	cr_expect_eq(text[strlen(text) - 1], '\n');
	free(text);
}

Test(merge, refuses_to_append_where_the_runtime_writes_nothing)
{
	runtime = fake_runtime_start(scratch, false);
	expect_said(RUN("merge", runtime->pid_text, "--jit=none", "--mode=append"), 1,
		    "writing no perf map");
	cr_expect(access(runtime->map_path, F_OK));
}

Test(merge, replaces_and_keeps_the_runtimes_file_within_reach)
{
	struct stat own, kept;
	char *kept_path, *text;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	own = status_of(runtime->map_path);
	expect_code(RUN("merge", runtime->pid_text, "--mode=replace"), 0);
	cr_assert(asprintf(&kept_path, "%s.runtime", runtime->map_path) > 0);
	kept = status_of(kept_path);
	cr_expect_eq(own.st_ino, kept.st_ino);
	cr_expect_neq(own.st_ino, status_of(runtime->map_path).st_ino);
	text = map_text();
	expect_our_form(text);
	cr_expect(strstr(text, "10000 40 void [app] Some.Type::Jitted(int32)[QuickJitted]\n"));
	free(text);
	/* The next merge finds what the runtime has added in between. */
	fake_runtime_write(runtime, jitted_later);
	expect_code(RUN("merge", runtime->pid_text), 0);
	text = map_text();
	cr_expect(strstr(text, later_anywhere));
	cr_expect(strstr(text, "Sample.Program::Main("));
	expect_our_form(text);
	free(text);
	free(kept_path);
}

Test(merge, undo_puts_the_runtimes_file_back)
{
	char *text, *kept_path, *both;
	struct stat own;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	own = status_of(runtime->map_path);
	expect_code(RUN("merge", runtime->pid_text, "--mode=replace"), 0);
	fake_runtime_write(runtime, jitted_later);
	expect_code(RUN("merge", "--undo", runtime->pid_text), 0);
	cr_expect_eq(status_of(runtime->map_path).st_ino, own.st_ino);
	cr_assert(asprintf(&kept_path, "%s.runtime", runtime->map_path) > 0);
	cr_expect(access(kept_path, F_OK), "the link was left behind");
	cr_assert(asprintf(&both, "%s%s", jitted, jitted_later) > 0);
	text = map_text();
	cr_expect_str_eq(text, both);
	expect_said(RUN("merge", "--undo", runtime->pid_text), 1, "nothing to undo");
	free(both);
	free(text);
	free(kept_path);
}

Test(merge, undo_leaves_what_an_earlier_process_left)
{
	const struct timespec old[] = { { .tv_sec = 1700000000 }, { .tv_sec = 1700000000 } };
	char *kept_path;

	runtime = fake_runtime_start(scratch, false);
	cr_assert(asprintf(&kept_path, "%s.runtime", runtime->map_path) > 0);
	scratch_write(kept_path, jitted, strlen(jitted));
	cr_assert_eq(utimensat(AT_FDCWD, kept_path, old, 0), 0);
	expect_said(RUN("merge", "--undo", runtime->pid_text), 1, "older than the process");
	cr_expect_eq(access(runtime->map_path, F_OK), -1);
	cr_expect_eq(unlink(kept_path), 0);
	free(kept_path);
}

Test(merge, writes_elsewhere_and_leaves_the_map_alone)
{
	char *output = scratch_path(scratch, "out.map"), *text;
	struct program_run printed;
	struct stat first, second;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	expect_code(RUN("merge", runtime->pid_text, "-o", output), 0);
	cr_expect_eq((size_t)status_of(runtime->map_path).st_size, strlen(jitted));
	text = scratch_read(output, NULL);
	expect_our_form(text);
	cr_expect(strstr(text, "Some.Type::Jitted"));
	printed = RUN("merge", runtime->pid_text, "-o", "-");
	cr_expect_str_eq(printed.out, text);
	cr_expect(strstr(printed.err, "map merging: "));
	expect_code(printed, 0);
	first = status_of(output);
	expect_code(RUN("merge", runtime->pid_text, "-o", output), 0);
	second = status_of(output);
	cr_expect(!memcmp(&first.st_mtim, &second.st_mtim, sizeof(first.st_mtim)));
	free(text);
	free(output);
}

Test(merge, does_not_write_elsewhere_into_what_is_no_file)
{
	char *output = scratch_path(scratch, "out.map"), *target = scratch_path(scratch, "target");
	struct stat status;

	runtime = fake_runtime_start(scratch, false);
	scratch_write(target, "keep", 4);
	cr_assert(!symlink(target, output));
	expect_said(RUN("merge", runtime->pid_text, "--jit=none", "-o", output), 1,
		    "symbolic link");
	cr_expect_eq(status_of(target).st_size, 4);
	unlink(output);
	cr_assert(!mkfifo(output, 0600));
	expect_said(RUN("merge", runtime->pid_text, "--jit=none", "-o", output), 1, "FIFO");
	status = status_of(output);
	cr_expect(S_ISFIFO(status.st_mode));
	expect_said(RUN("merge", runtime->pid_text, "--jit=none", "-o", "/nonexistent/x.map"), 1,
		    "/nonexistent");
	free(target);
	free(output);
}

Test(merge, neither_uses_nor_follows_a_link_in_the_place_of_the_map)
{
	static const char bogus[] = "10000 40 bogus::name\n";
	char *target = scratch_path(scratch, "planted"), *text;

	runtime = fake_runtime_start(scratch, false);
	scratch_write(target, bogus, sizeof(bogus) - 1);
	cr_assert(!symlink(target, runtime->map_path));
	expect_said(RUN("merge", runtime->pid_text, "--jit=none"), 0, "symbolic link");
	text = scratch_read(target, NULL);
	cr_expect_str_eq(text, bogus);
	free(text);
	cr_expect(S_ISREG(status_of(runtime->map_path).st_mode));
	text = map_text();
	cr_expect(!strstr(text, "bogus"));
	free(text);
	free(target);
}

Test(merge, does_not_wait_for_a_fifo_in_the_place_of_the_map)
{
	runtime = fake_runtime_start(scratch, false);
	cr_assert(!mkfifo(runtime->map_path, 0644));
	expect_said(RUN("merge", runtime->pid_text, "--jit=none"), 0, "FIFO");
	cr_expect(S_ISREG(status_of(runtime->map_path).st_mode));
}

/* A process may write anything into its map: addresses that are no code get no line. */
Test(merge, leaves_lines_out_that_lie_in_no_code)
{
	char *output = scratch_path(scratch, "elsewhere.map"), *text;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	fake_runtime_write(runtime, "0x1000 40 in_no_memory\n"
				    "0x2ffff ffff beyond_the_end\n"
				    "ffffffff81000000 b of_the_kernel\n");
	expect_code(RUN("merge", runtime->pid_text, "--jit=perfmap", "-o", output), 0);
	text = scratch_read(output, NULL);
	cr_assert(text);
	cr_expect(strstr(text, "10000 40 void [app] Some.Type::Jitted(int32)[QuickJitted]\n"));
	cr_expect(strstr(text, "2ffff 1 beyond_the_end\n"), "%s", text);
	cr_expect_not(strstr(text, "in_no_memory"));
	cr_expect_not(strstr(text, "of_the_kernel"));
	free(text);
	free(output);
}

Test(merge, names_nothing_from_an_image_replaced_on_disk)
{
	char *replacement = scratch_path(scratch, "new.dll"), *bytes;
	struct program_run done;
	size_t size_bytes;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	/* As long as the old text, with other names in it. */
	bytes = scratch_read(runtime->image_path, &size_bytes);
	for (char *name = bytes;
	     (name = memmem(name, size_bytes - (size_t)(name - bytes), "Program", 7));)
		memcpy(name, "Prigram", 7);
	scratch_write(replacement, bytes, size_bytes);
	cr_assert(!rename(replacement, runtime->image_path));
	done = RUN("merge", runtime->pid_text, "-o", "-");
	cr_expect(!strstr(done.out, "Prigram"), "the new file was believed");
	/* The old file may still be reachable, through a mapping of the process. */
	cr_expect_eq(done.exit_code, strstr(done.out, "[sample] Sample.Program::") ? 0 : 3);
	cr_expect(strstr(done.out, "Some.Type::Jitted"));
	program_run_deinit(&done);
	free(bytes);
	free(replacement);
}

Test(merge, refuses_a_process_without_a_runtime)
{
	pid_t child = fork();
	char text[16];

	if (!child) {
		pause();
		_exit(0);
	}
	snprintf(text, sizeof(text), "%d", child);
	expect_said(RUN("merge", text), 1, "no .NET runtime");
	expect_said(RUN("generate", text), 1, "no .NET runtime");
	expect_said(RUN("list", text), 1, "no .NET runtime");
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

Test(merge, says_each_time_that_jitted_code_has_no_names)
{
	runtime = fake_runtime_start(scratch, false);
	expect_said(RUN("merge", runtime->pid_text), 3, "jitted code: ");
	expect_said(RUN("merge", runtime->pid_text), 3, "jitted code: ");
	expect_code(RUN("merge", runtime->pid_text, "--jit=none"), 0);
}

/* The diagnostics socket there has no listener. */
Test(merge, keeps_a_map_with_names_of_jitted_code_when_nobody_tells_them_any_more)
{
	char *before, *after;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	expect_code(RUN("merge", runtime->pid_text, "--mode=replace"), 0);
	before = map_text();
	cr_expect(strstr(before, "Some.Type::Jitted"));
	for (size_t i = 0; i < 2; i++) {
		expect_said(RUN("merge", runtime->pid_text, i ? "--jit=memory" : "--jit=rundown",
				"--mode=replace"),
			    3, "stays as it is");
		after = map_text();
		cr_expect_str_eq(after, before);
		free(after);
	}
	free(before);
}

/* The process writes a perf map, but the user asked for another list of its methods. */
Test(merge, reports_that_the_way_that_was_asked_for_has_failed)
{
	char *output = scratch_path(scratch, "elsewhere.map");

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	for (size_t i = 0; i < 2; i++) {
		const char *way = i ? "--jit=memory" : "--jit=rundown";

		expect_said(RUN("merge", runtime->pid_text, way, "-o", "-"), 3, "jitted code: ");
		expect_said(RUN("merge", runtime->pid_text, way, "-o", output), 3, "jitted code: ");
		expect_said(RUN("merge", runtime->pid_text, way), 3, "jitted code: ");
	}
	expect_code(RUN("merge", runtime->pid_text, "-o", output), 0);
	free(output);
}

Test(merge, sees_what_has_changed_since_it_wrote_nothing)
{
	char *text;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	for (int i = 0; i < 2; i++)
		expect_code(RUN("merge", runtime->pid_text, "--mode=replace"), 0);
	fake_runtime_write(runtime, jitted_later);
	expect_code(RUN("merge", runtime->pid_text, "--mode=replace"), 0);
	text = map_text();
	cr_expect(strstr(text, later_anywhere));
	free(text);
	scratch_write(runtime->map_path, "", 0);
	expect_code(RUN("merge", runtime->pid_text, "--mode=replace"), 0);
	text = map_text();
	cr_expect(strstr(text, later_anywhere));
	cr_expect(strstr(text, "Sample.Program::Main("));
	free(text);
}

Test(merge, json_tells_what_was_done)
{
	struct program_run done;

	runtime = fake_runtime_start(scratch, true);
	done = RUN("merge", runtime->pid_text, "--json");
	cr_expect(strstr(done.out, "\"action\": \"appended\""), "%s", done.out);
	cr_expect(strstr(done.out, "\"images\": 1"), "%s", done.out);
	cr_expect(strstr(done.out, runtime->map_path), "%s", done.out);
	expect_code(done, 0);
}

/* Stock bpftrace reads the whole map for each address. */
Test(merge, says_how_large_the_map_is_and_what_cannot_cope_with_it)
{
	struct program_run done;
	char size[64];
	FILE *map;

	runtime = fake_runtime_start(scratch, true);
	done = RUN("merge", runtime->pid_text, "--jit=none");
	cr_expect(strstr(done.out, "the map has "), "%s", done.out);
	cr_expect_null(strstr(done.err, "loses stacks"), "%s", done.err);
	expect_code(done, 0);
	map = fopen(runtime->map_path, "a");
	for (unsigned int i = 0; i < 100000; i++)
		fprintf(map, "%x 10 a_method_of_a_large_application_%u\n", 0x10000000 + 16 * i, i);
	fclose(map);
	done = RUN("merge", runtime->pid_text, "--jit=none", "--json");
	snprintf(size, sizeof(size), "\"map_bytes\": %lld,",
		 (long long)status_of(runtime->map_path).st_size);
	cr_expect(strstr(done.out, size), "%s is not in %s", size, done.out);
	expect_said(done, 0, "loses stacks: start it with BPFTRACE_CACHE_USER_SYMBOLS=1");
}

/* ---- killed at any moment ------------------------------------------------ */

static void kill_after(const char *mode, const char *tiers, long delay_us)
{
	const char *const arguments[] = { "merge", runtime->pid_text, mode, tiers, NULL };
	const struct timespec delay = { .tv_nsec = delay_us * 1000 };
	pid_t program = program_start(scratch, arguments);

	nanosleep(&delay, NULL);
	kill(program, SIGKILL);
	waitpid(program, NULL, 0);
}

/* The writing child of the killed program ends by itself; afterwards the file has whole lines. */
static void expect_whole_lines(void)
{
	char *text = map_text();

	for (int turn = 0; text[strlen(text) - 1] != '\n' && wait_turn(turn); turn++) {
		free(text);
		text = map_text();
	}
	for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
		uint64_t start, size_bytes;
		int name = 0;

		cr_assert(strchr(line, '\n'), "half a line: %s", line);
		cr_assert_eq(sscanf(line, "%" SCNx64 " %" SCNx64 " %n", &start, &size_bytes, &name),
			     2, "%.80s", line);
	}
	free(text);
}

Test(merge, killed_while_it_appends_leaves_whole_lines)
{
	char *text;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	for (long round = 0; round < 60; round++) {
		/* Another form of the lines each time, so that there is something to write. */
		kill_after("--mode=append", round % 2 ? "--tiers=strip" : "--tiers=keep",
			   round * 300);
		fake_runtime_write(runtime, jitted_later);
		expect_whole_lines();
	}
	text = map_text();
	cr_expect_eq(count_of(text, jitted), 1);
	cr_expect_eq(count_of(text, jitted_later), 60);
	free(text);
}

Test(merge, killed_while_it_replaces_leaves_the_old_map_or_the_new_one)
{
	char *kept_path, *text;

	runtime = fake_runtime_start(scratch, true);
	fake_runtime_write(runtime, jitted);
	cr_assert(asprintf(&kept_path, "%s.runtime", runtime->map_path) > 0);
	for (long round = 0; round < 60; round++) {
		kill_after("--mode=replace", round % 2 ? "--tiers=strip" : "--tiers=keep",
			   round * 300);
		expect_whole_lines();
		text = map_text();
		cr_expect_eq(count_of(text, "Some.Type::Jitted(int32)"), 1);
		free(text);
	}
	expect_code(RUN("merge", runtime->pid_text, "--mode=replace"), 0);
	text = scratch_read(kept_path, NULL);
	cr_expect_str_eq(text, jitted);
	free(text);
	free(kept_path);
}
