/* SPDX-License-Identifier: MIT */
#include "libsym/clr/runtime_info.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/alloc_fail.h"
#include "tests/support/proc_tree.h"
#include "tests/support/runtime_elf.h"

/* Identification in the runtimes of these versions. */
static const char ident_10[] =
	"@(#)Version 10.0.1226.42308 @Commit: 95017c711e6afc1085133d440e42b4bd78155701";
static const char ident_3[] =
	"@(#)Version 4.700.20.11803 @Commit: c5d3d752260383fbed72ba2b4d86d82fea673c76";

/* An application of its own directory; `maps` names it /app/App. */
struct application {
	struct proc_tree tree;
	struct process *process;
	struct address_space *space;
	struct runtime_info info;
};

static void set_up(struct application *application, const char *maps)
{
	*application = (struct application){ 0 };
	proc_tree_create(&application->tree);
	proc_tree_add_process(
		&application->tree,
		&(struct proc_tree_process){ .pid = 5, .executable = "/app/App", .maps = maps });
}

static void add_elf(struct application *application, const char *path, const char *exported,
		    const char *ident, size_t mapped_file_check_offset)
{
	uint8_t *file AUTO_FREE = malloc(RUNTIME_ELF_BYTES);

	cr_assert_not_null(file);
	runtime_elf_build(file, exported, ident, mapped_file_check_offset);
	proc_tree_write(&application->tree, path, file, RUNTIME_ELF_BYTES);
}

static void look(struct application *application)
{
	cr_assert_null(process_open(5, application->tree.root, &application->process));
	cr_assert_null(address_space_read(application->process, &application->space));
	cr_assert_null(
		runtime_info_read(application->process, application->space, &application->info));
}

static void tear_down(struct application *application)
{
	address_space_destroy(application->space);
	process_close(application->process);
	proc_tree_destroy(&application->tree);
}

static const char shared_maps[] =
	"1000-2000 r-xp 00000000 08:01 1 /usr/bin/dotnet\n"
	"3000-4000 r--p 00000000 08:01 2 "
	"/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.0-rc.1.25451.107/libcoreclr.so\n"
	"4000-5000 r-xp 00001000 08:01 2 "
	"/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.0-rc.1.25451.107/libcoreclr.so\n";

static const char own_maps[] = "1000-2000 r-xp 00000000 08:01 1 /app/App\n"
			       "3000-4000 r--p 00000000 08:01 2 /app/libcoreclr.so\n"
			       "4000-5000 r-xp 00001000 08:01 2 /app/libcoreclr.so\n";

static const char bare_maps[] = "1000-2000 r--p 00000000 08:01 1 /app/App\n"
				"2000-3000 r-xp 00001000 08:01 1 /app/App\n"
				"5000-6000 r-xp 00000000 08:01 3 /lib/libc.so.6\n";

Test(runtime_info, reads_the_version_of_a_shared_framework_from_its_directory)
{
	struct application application;

	/* The file itself is not needed. */
	set_up(&application, shared_maps);
	look(&application);
	cr_expect_str_eq(application.info.shape, "framework-dependent");
	cr_expect_str_eq(application.info.version, "10.0.0-rc.1.25451.107");
	cr_expect_eq(application.info.mapping_index, 1);
	tear_down(&application);
}

Test(runtime_info, reads_the_version_of_an_own_runtime_from_its_file)
{
	struct application application;

	set_up(&application, own_maps);
	add_elf(&application, "/app/libcoreclr.so", NULL, ident_10, 0x8000);
	look(&application);
	cr_expect_str_eq(application.info.shape, "self-contained");
	cr_expect_str_eq(application.info.version, "10.0.12");
	cr_expect_eq(application.info.mapping_index, 1);
	tear_down(&application);
}

Test(runtime_info, reads_an_identification_anywhere_in_a_file)
{
	size_t offset;

	/*
	 * The file is searched in pieces of 64 KiB: the text before, across and after their ends.
	 */
	for (offset = 0x10000 - sizeof(ident_10); offset <= 0x10000; offset++) {
		struct application application;

		set_up(&application, own_maps);
		add_elf(&application, "/app/libcoreclr.so", NULL, ident_10, offset);
		look(&application);
		cr_expect_str_eq(application.info.version, "10.0.12", "offset 0x%zx", offset);
		tear_down(&application);
	}
}

Test(runtime_info, reads_an_identification_at_the_very_end)
{
	struct application application;

	set_up(&application, own_maps);
	add_elf(&application, "/app/libcoreclr.so", NULL, ident_10,
		RUNTIME_ELF_BYTES - strlen(ident_10));
	look(&application);
	cr_expect_str_eq(application.info.version, "10.0.12");
	tear_down(&application);
}

Test(runtime_info, reads_the_version_of_old_runtimes_from_deps_json)
{
	struct application application;

	set_up(&application, own_maps);
	add_elf(&application, "/app/libcoreclr.so", NULL, ident_3, 0x8000);
	proc_tree_write_text(
		&application.tree, "/app/App.deps.json",
		"{ \"runtimeTarget\": { \"name\": \".NETCoreApp,Version=v3.1/linux-x64\" },\n"
		"\"App/1.0.0\": { \"dependencies\": {\n"
		"  \"runtimepack.Microsoft.NETCore.App.Runtime.linux-x64\": \"3.1.3\" } },\n"
		"\"runtimepack.Microsoft.NETCore.App.Runtime.linux-x64/3.1.3\": { } }\n");
	look(&application);
	cr_expect_str_eq(application.info.shape, "self-contained");
	cr_expect_str_eq(application.info.version, "3.1.3");
	tear_down(&application);
}

/* Single-file applications of 3.1 are unpacked to a directory NAME/ID. */
Test(runtime_info, recognises_an_unpacked_single_file_application)
{
	static const struct {
		const char *directory, *shape;
	} cases[] = {
		{ "/var/tmp/.net/App/VBW0JrqjSHkk", "single-file" },
		{ "/App/1", "single-file" },
		{ "/var/tmp/.net/MyApp/VBW0JrqjSHkk", "self-contained" },
		{ "/var/tmp/.net/App/x/VBW0JrqjSHkk", "self-contained" },
		{ "/var/App", "self-contained" },
		{ "/App", "self-contained" },
		{ "", "self-contained" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct application application;
		char maps[512], path[128];

		snprintf(maps, sizeof(maps),
			 "1000-2000 r-xp 00000000 08:01 1 /app/App\n"
			 "3000-4000 r-xp 00000000 08:01 2 %s/libcoreclr.so\n",
			 cases[i].directory);
		set_up(&application, maps);
		snprintf(path, sizeof(path), "%s/libcoreclr.so", cases[i].directory);
		add_elf(&application, path, NULL, ident_3, 0x8000);
		snprintf(path, sizeof(path), "%s/App.deps.json", cases[i].directory);
		proc_tree_write_text(
			&application.tree, path,
			"{ \"runtimepack.Microsoft.NETCore.App.Runtime.linux-x64/3.1.3\": { } }\n");
		look(&application);
		cr_expect_str_eq(application.info.shape, cases[i].shape, "%s", cases[i].directory);
		cr_expect_str_eq(application.info.version, "3.1.3");
		tear_down(&application);
	}
}

Test(runtime_info, finds_a_runtime_inside_the_executable)
{
	struct application application;

	set_up(&application, bare_maps);
	add_elf(&application, "/app/App", "g_dacTable", ident_10, 0x9000);
	look(&application);
	cr_expect_str_eq(application.info.shape, "single-file");
	cr_expect_str_eq(application.info.version, "10.0.12");
	cr_expect_eq(application.info.mapping_index, 0);
	tear_down(&application);
}

Test(runtime_info, recognises_nativeaot)
{
	struct application application;

	set_up(&application, bare_maps);
	add_elf(&application, "/app/App", "DotNetRuntimeDebugHeader", NULL, 0);
	look(&application);
	cr_expect_str_eq(application.info.shape, "nativeaot");
	cr_expect_str_eq(application.info.version, "");
	tear_down(&application);
}

Test(runtime_info, finds_no_runtime_in_an_ordinary_program)
{
	static const char *const others[] = { NULL, "my_g_dacTable", "g_dacTable2", "g_dacTabl" };
	size_t i;

	for (i = 0; i < sizeof(others) / sizeof(*others); i++) {
		struct application application;

		set_up(&application, bare_maps);
		add_elf(&application, "/app/App", others[i], ident_10, 0x9000);
		look(&application);
		cr_expect_null(application.info.shape, "%s", others[i]);
		cr_expect_eq(application.info.mapping_index, ADDRESS_SPACE_NONE);
		tear_down(&application);
	}
}

Test(runtime_info, ignores_a_runtime_mapped_for_reading)
{
	struct application application;

	/* A debugger maps the file to read it. */
	set_up(&application, "1000-2000 r-xp 00000000 08:01 1 /app/App\n"
			     "3000-4000 r--p 00000000 08:01 2 /app/libcoreclr.so\n"
			     "5000-6000 r-xp 00000000 08:01 3 /app/notlibcoreclr.so\n"
			     "7000-8000 r-xp 00000000 08:01 4 /app/libcoreclr.so.6\n");
	add_elf(&application, "/app/App", NULL, NULL, 0);
	look(&application);
	cr_expect_null(application.info.shape);
	tear_down(&application);
}

Test(runtime_info, has_no_version_when_files_are_missing_or_invalid)
{
	struct application application;

	set_up(&application, own_maps);
	look(&application);
	cr_expect_str_eq(application.info.shape, "self-contained");
	cr_expect_str_eq(application.info.version, "");
	tear_down(&application);

	set_up(&application, own_maps);
	proc_tree_write_text(&application.tree, "/app/libcoreclr.so",
			     "@(#)Version 10.0.1226.42308 ");
	look(&application);
	cr_expect_str_eq(application.info.version, "");
	tear_down(&application);

	set_up(&application, own_maps);
	add_elf(&application, "/app/libcoreclr.so", NULL, "@(#)Version x.y @(#)Version ", 0x8000);
	look(&application);
	cr_expect_str_eq(application.info.version, "");
	tear_down(&application);
}

Test(runtime_info, accepts_only_versions_as_directory_names)
{
	struct application application;

	set_up(&application, "3000-4000 r-xp 00000000 08:01 2 "
			     "/x/shared/Microsoft.NETCore.App/current/libcoreclr.so\n"
			     "7000-8000 r-xp 00000000 08:01 4 /libcoreclr.so\n");
	look(&application);
	cr_expect_str_eq(application.info.shape, "self-contained");
	cr_expect_str_eq(application.info.version, "");
	tear_down(&application);
}

static bool look_again(void *context)
{
	struct application *application = context;
	struct runtime_info info;
	struct sym_error *error;

	error = runtime_info_read(application->process, application->space, &info);
	if (error) {
		cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY);
		sym_error_destroy(error);
		return false;
	}
	cr_expect_str_eq(info.version, "3.1.3", "an answer that was cut short is none");
	return true;
}

Test(runtime_info, survives_every_failing_allocation)
{
	struct application application;

	set_up(&application, own_maps);
	add_elf(&application, "/app/libcoreclr.so", NULL, ident_3, 0x8000);
	proc_tree_write_text(&application.tree, "/app/App.deps.json",
			     "runtimepack.Microsoft.NETCore.App.Runtime.linux-x64/3.1.3");
	look(&application);
	cr_expect_gt(alloc_fail_each(look_again, &application), 1);
	tear_down(&application);
}
