/* SPDX-License-Identifier: MIT */
/* list on recorded trees and real processes. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/fake_runtime.h"
#include "tests/support/proc_tree.h"
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

TestSuite(list, .init = set_up, .fini = tear_down);

static struct program_run run(const char *const *arguments)
{
	return program_run(scratch, NULL, arguments);
}

#define RUN(...) run((const char *const[]){ __VA_ARGS__, NULL })

Test(list, shows_processes_with_a_runtime_and_no_others)
{
	static const char runtime_maps[] =
		"7f0000000000-7f0000001000 r-xp 00000000 08:01 77 "
		"/usr/share/dotnet/shared/Microsoft.NETCore.App/9.0.1/libcoreclr.so\n";
	struct proc_tree tree;
	struct program_run done;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 41, .comm = "bash" });
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 42,
								  .uid = 1234,
								  .comm = "web\033[31m",
								  .maps = runtime_maps });
	done = RUN("list", "--root", tree.root);
	cr_expect_eq(done.exit_code, 0, "%s", done.err);
	cr_expect_eq(count_lines(done.out), 2, "%s", done.out);
	cr_expect(strstr(done.out, " 42 1234 "), "%s", done.out);
	cr_expect(strstr(done.out, "9.0.1"), "%s", done.out);
	cr_expect(strstr(done.out, "framework-dependent"), "%s", done.out);
	cr_expect(!strchr(done.out, '\033'), "a command drew on the terminal");
	program_run_deinit(&done);
	done = RUN("list", "--root", tree.root, "--json");
	cr_expect(strstr(done.out, "\"pid\": 42"), "%s", done.out);
	cr_expect(strstr(done.out, "\"runtime_version\": \"9.0.1\""), "%s", done.out);
	cr_expect(strstr(done.out, "\"writes_perf_map\": false"), "%s", done.out);
	cr_expect(!strstr(done.out, "\"pid\": 41"), "%s", done.out);
	program_run_deinit(&done);
	proc_tree_destroy(&tree);
}

Test(list, an_empty_machine_is_no_failure)
{
	struct proc_tree tree;
	struct program_run done;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 41, .comm = "bash" });
	done = RUN("list", "--root", tree.root);
	cr_expect_eq(done.exit_code, 0);
	cr_expect_eq(done.out_bytes, 0);
	cr_expect_eq(count_lines(done.err), 1);
	program_run_deinit(&done);
	done = RUN("list", "--root", tree.root, "--json");
	cr_expect_str_eq(done.out, "[]\n");
	program_run_deinit(&done);
	proc_tree_destroy(&tree);
}

Test(list, shows_the_images_of_a_process)
{
	struct fake_runtime *runtime = fake_runtime_start(scratch, true);
	struct program_run done = RUN("list", runtime->pid_text);
	char *line;

	cr_assert(asprintf(&line, "%lx r2r ", (unsigned long)runtime->load_base) > 0);
	cr_expect_eq(done.exit_code, 0, "%s", done.err);
	cr_expect(strstr(done.out, line), "'%s' is not in: %s", line, done.out);
	cr_expect(strstr(done.out, runtime->image_path), "%s", done.out);
	program_run_deinit(&done);
	free(line);
	done = RUN("list", runtime->pid_text, "--json");
	cr_expect(strstr(done.out, "\"assembly\": \"sample\""), "%s", done.out);
	cr_expect(strstr(done.out, "\"kind\": \"r2r\""), "%s", done.out);
	program_run_deinit(&done);
	fake_runtime_stop(runtime);
}

Test(list, tells_whether_the_runtime_writes_a_map)
{
	struct fake_runtime *runtime = fake_runtime_start(scratch, true);
	struct program_run done = RUN("list", "--json");
	char *row;

	cr_assert(asprintf(&row, "\"pid\": %s,", runtime->pid_text) > 0);
	cr_expect(strstr(done.out, row), "%s", done.out);
	cr_expect(strstr(strstr(done.out, row), "\"writes_perf_map\": true"));
	cr_expect(strstr(strstr(done.out, row), runtime->map_path));
	program_run_deinit(&done);
	free(row);
	fake_runtime_stop(runtime);
}

Test(list, shows_why_a_map_is_not_used)
{
	struct fake_runtime *runtime = fake_runtime_start(scratch, false);
	struct program_run done;

	cr_assert(!symlink("/etc/passwd", runtime->map_path));
	done = RUN("list");
	cr_expect(strstr(done.out, runtime->map_path), "%s", done.out);
	cr_expect(strstr(done.out, "is not used: it is a symbolic link"), "%s", done.out);
	program_run_deinit(&done);
	fake_runtime_stop(runtime);
}
