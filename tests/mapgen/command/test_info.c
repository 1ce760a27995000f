/* SPDX-License-Identifier: MIT */
/* info on recorded trees and real processes. */
#include <criterion/criterion.h>
#include <elf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/fake_runtime.h"
#include "tests/support/proc_tree.h"
#include "tests/support/program.h"
#include "tests/support/runtime_elf.h"

static char *scratch;

static void set_up(void)
{
	scratch = scratch_create();
}

static void tear_down(void)
{
	scratch_remove(scratch);
}

TestSuite(info, .init = set_up, .fini = tear_down);

static struct program_run run(const char *const *arguments)
{
	return program_run(scratch, NULL, arguments);
}

#define RUN(...) run((const char *const[]){ __VA_ARGS__, NULL })

#define RUNTIME                                                                                    \
	"7f0000000000-7f0000001000 r-xp 00000000 08:01 77 "                                        \
	"/usr/share/dotnet/shared/Microsoft.NETCore.App/9.0.1/libcoreclr.so\n"

static void expect_protection(const char *maps, const char *text, const char *json)
{
	struct proc_tree tree;
	struct program_run done;

	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 42, .maps = maps });
	done = RUN("info", "--root", tree.root, "42");
	cr_expect_eq(done.exit_code, 0, "%s", done.err);
	cr_expect(strstr(done.out, text), "%s", done.out);
	cr_expect(strstr(done.out, "9.0.1, framework-dependent\n"), "%s", done.out);
	program_run_deinit(&done);
	done = RUN("info", "--root", tree.root, "--json", "42");
	cr_expect(strstr(done.out, json), "%s", done.out);
	program_run_deinit(&done);
	proc_tree_destroy(&tree);
}

Test(info, tells_double_mapped_code_from_writable_code)
{
	expect_protection(RUNTIME "7f1000000000-7f1000010000 r-xs 00000000 00:01 9 "
				  "/memfd:doublemapper (deleted)\n",
			  "W^X          on\n", "\"write_xor_execute\": \"on\"");
	expect_protection(RUNTIME "7f1000000000-7f1000010000 rwxp 00000000 00:00 0 \n",
			  "W^X          off\n", "\"write_xor_execute\": \"off\"");
	expect_protection(RUNTIME, "W^X          unknown", "\"write_xor_execute\": null");
}

Test(info, counts_images_and_their_methods)
{
	struct fake_runtime *runtime = fake_runtime_start(scratch, true);
	struct program_run done = RUN("info", runtime->pid_text);

	cr_expect_eq(done.exit_code, 0, "%s", done.err);
	cr_expect(strstr(done.out, " 1 r2r"), "%s", done.out);
	cr_expect(strstr(done.out, "precompiled  1 images, "), "%s", done.out);
	cr_expect(!strstr(done.out, "precompiled  1 images, 0 methods"), "%s", done.out);
	cr_expect(!strstr(done.out, "bundle"), "%s", done.out);
	program_run_deinit(&done);
	fake_runtime_stop(runtime);
}

static void expect_said(struct program_run done, int exit_code, const char *text)
{
	cr_expect_eq(done.exit_code, exit_code, "%s", done.err);
	cr_expect(strstr(done.out, text) || strstr(done.err, text), "no \"%s\" in %s%s", text,
		  done.out, done.err);
	program_run_deinit(&done);
}

/* Every command that looks at methods reports that there are none here, and why; matrix.py has
 * programs with a symbol table and with a .dbg file. */
Test(info, says_that_a_stripped_nativeaot_program_has_no_names)
{
	static const char said[] = "without names: neither it nor a .dbg file";
	uint8_t *file = malloc(RUNTIME_ELF_BYTES);
	char *map = scratch_path(scratch, "out.map");
	struct proc_tree tree;

	cr_assert_not_null(file);
	runtime_elf_build(file, "DotNetRuntimeDebugHeader", NULL, 0);
	file[sizeof(Elf64_Ehdr) + offsetof(Elf64_Phdr, p_flags)] |= PF_X;
	proc_tree_create(&tree);
	proc_tree_add_process(&tree,
			      &(struct proc_tree_process){
				      .pid = 43,
				      .comm = "App",
				      .executable = "/app/App",
				      .maps = "400000-440000 r-xp 00000000 08:01 1 /app/App\n" });
	proc_tree_write(&tree, "/app/App", file, RUNTIME_ELF_BYTES);
	expect_said(RUN("info", "--root", tree.root, "43"), 0, said);
	expect_said(RUN("info", "--root", tree.root, "--json", "43"), 0, "\"symbol_file\": null");
	expect_said(RUN("list", "--root", tree.root, "43"), 0, said);
	expect_said(RUN("generate", "--root", tree.root, "-o", scratch, "43"), 0, said);
	expect_said(RUN("merge", "--root", tree.root, "-o", map, "43"), 3, said);
	proc_tree_destroy(&tree);
	free(map);
	free(file);
}

Test(info, takes_one_process_that_hosts_a_runtime)
{
	struct proc_tree tree;
	struct program_run done = RUN("info");

	cr_expect_eq(done.exit_code, 2);
	cr_expect_eq(count_lines(done.err), 1);
	program_run_deinit(&done);
	proc_tree_create(&tree);
	proc_tree_add_process(&tree, &(struct proc_tree_process){ .pid = 41, .comm = "bash" });
	done = RUN("info", "--root", tree.root, "41");
	cr_expect_eq(done.exit_code, 1);
	cr_expect_eq(count_lines(done.err), 1);
	program_run_deinit(&done);
	proc_tree_destroy(&tree);
}
