/* SPDX-License-Identifier: MIT */
/* generate on files: which files are taken, where the maps go, and which errors concern one image
 * only. */
#include <criterion/criterion.h>
#include <dirent.h>
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
#include "tests/support/r2r_sample.h"
#include "tests/support/waiting.h"

static char *scratch, *input, *output;

static void copy_sample(const char *path)
{
	size_t size_bytes;
	char *bytes = scratch_read("fixtures/recorded/opt/sample/sample.dll", &size_bytes);

	cr_assert(bytes, "the tests run in the top directory of the tree");
	scratch_write(path, bytes, size_bytes);
	free(bytes);
}

/* The same assembly with other bytes: the reserved word at the end of the DOS header has no
 * meaning. */
static void copy_other_sample(const char *path)
{
	size_t size_bytes;
	char *bytes = scratch_read("fixtures/recorded/opt/sample/sample.dll", &size_bytes);

	cr_assert(bytes);
	bytes[0x28] ^= 1;
	scratch_write(path, bytes, size_bytes);
	free(bytes);
}

static void set_up(void)
{
	scratch = scratch_create();
	input = scratch_path(scratch, "in");
	output = scratch_path(scratch, "out");
	cr_assert(!mkdir(input, 0755));
}

static void tear_down(void)
{
	free(input);
	free(output);
	scratch_remove(scratch);
}

TestSuite(generate, .init = set_up, .fini = tear_down);

static struct program_run run(const char *const *arguments)
{
	return program_run(scratch, NULL, arguments);
}

#define RUN(...) run((const char *const[]){ __VA_ARGS__, NULL })

static void expect_end(struct program_run done, int code, const char *last_line)
{
	const char *end = done.out + done.out_bytes;
	size_t length = strlen(last_line);

	cr_expect_eq(done.exit_code, code, "exit code %d: %s%s", done.exit_code, done.out,
		     done.err);
	cr_expect(done.out_bytes >= length && !strcmp(end - length, last_line), "%s", done.out);
	program_run_deinit(&done);
}

static char *only_map(const char *directory)
{
	return scratch_only_file(directory, ".map");
}

Test(generate, writes_rows_of_rva_size_and_name)
{
	char *assembly = scratch_path(input, "sample.dll"), *path, *text;
	size_t rows = 0;

	copy_sample(assembly);
	expect_end(RUN("generate", assembly, "-o", output), 0,
		   "map generation: 1 succeeded, 0 without precompiled code, 0 failed\n");
	path = only_map(output);
	cr_expect(!strncmp(strrchr(path, '/'), "/sample.ni.{", 12), "%s", path);
	text = scratch_read(path, NULL);
	for (char *line = text; *line; line = strchr(line, '\n') + 1) {
		uint64_t rva, size_bytes;
		int after_rva = 0, name = 0;

		cr_assert_eq(sscanf(line, "%" SCNx64 "%n %" SCNx64 " %n", &rva, &after_rva,
				    &size_bytes, &name),
			     2, "%.80s", line);
		cr_expect_eq(after_rva, 8, "%.80s", line);
		cr_expect(size_bytes > 0 && name);
		rows++;
	}
	cr_expect(rows > 20);
	cr_expect(strstr(text, " int32 [sample] Sample.Program::Main("));
	cr_expect(!strstr(text, "[PreJIT]"));
	free(text);
	free(path);
	free(assembly);
}

Test(generate, keeps_what_is_in_the_cache)
{
	char *assembly = scratch_path(input, "sample.dll"), *keys, *path;
	char *cache = scratch_path(scratch, "cache/dotnet-mapgen");
	struct stat first, second, directory;
	struct dirent *entry;
	DIR *entries;

	copy_sample(assembly);
	for (int i = 0; i < 2; i++) {
		expect_end(RUN("generate", assembly), 0,
			   "map generation: 1 succeeded, 0 without precompiled code, 0 failed\n");
		entries = opendir(cache);
		cr_assert(entries);
		do
			entry = readdir(entries);
		while (entry && entry->d_name[0] == '.');
		cr_assert(entry);
		cr_expect_eq(strlen(entry->d_name), 64, "%s is no content key", entry->d_name);
		keys = scratch_path(cache, entry->d_name);
		closedir(entries);
		path = only_map(keys);
		cr_assert(!stat(path, i ? &second : &first) && !stat(keys, &directory));
		cr_expect_eq(directory.st_mode & 07777, 0700);
		free(path);
		free(keys);
	}
	cr_expect_eq(first.st_ino, second.st_ino);
	free(cache);
	free(assembly);
}

static void write_image(const char *path, const struct r2r_recipe *recipe)
{
	struct buf file;

	buf_init(&file, 1 << 20);
	build_r2r(&file, recipe);
	scratch_write(path, file.data, file.size_bytes);
	buf_deinit(&file);
}

/* Three methods of App, and code of one of Lib, which only Lib can name. */
static void write_app(const char *path)
{
	struct r2r_recipe recipe;
	struct buf app, manifest;

	buf_init(&app, 1 << 16);
	buf_init(&manifest, 1 << 16);
	build_app_metadata(&app);
	build_member_manifest(&manifest, "#:2");
	recipe = plain_recipe(&app);
	recipe.manifest = &manifest;
	recipe.instance_count = 1;
	recipe.instances[0] = (struct r2r_recipe_instance)INSTANCE("\x80\xd0\x03\x12\x0d\x04", 4);
	write_image(path, &recipe);
	buf_deinit(&manifest);
	buf_deinit(&app);
}

static void write_lib(const char *path)
{
	struct r2r_recipe recipe = {
		.machine = 0xfd1d,
		.major_version = 16,
		.function_count = 1,
		.functions = { { 0x10000, 0x10 } },
		.method_count = 1,
		.methods = { { 1, 0, FIXUPS_NONE } },
	};
	struct buf lib;

	buf_init(&lib, 1 << 16);
	build_lib_metadata(&lib);
	recipe.metadata = &lib;
	write_image(path, &recipe);
	buf_deinit(&lib);
}

static void expect_incomplete(struct program_run done)
{
	cr_expect(strstr(done.err, "App.dll: 1 of 4 methods have no name: definition of another"),
		  "%s", done.err);
	expect_end(done, 3,
		   "map generation: 0 succeeded, 1 incomplete, 0 without precompiled code, "
		   "0 failed\n");
}

Test(generate, says_how_many_methods_have_no_name_and_why)
{
	char *assembly = scratch_path(input, "App.dll");
	struct program_run done;

	write_app(assembly);
	expect_incomplete(RUN("generate", assembly, "-o", output));
	done = RUN("generate", assembly, "-o", output, "--json");
	cr_expect(strstr(done.out, "\"outcome\": \"incomplete\""), "%s", done.out);
	cr_expect(strstr(done.out, "\"reason\": \"1 of 4 methods"), "%s", done.out);
	cr_expect(strstr(done.out, "\"incomplete\": 1"), "%s", done.out);
	cr_expect_eq(done.exit_code, 3);
	program_run_deinit(&done);
	/* The image itself has the names that crossgen2 uses. */
	expect_end(RUN("generate", assembly, "-o", output, "--format=r2rmap"), 0,
		   "map generation: 1 succeeded, 0 without precompiled code, 0 failed\n");
	free(assembly);
}

Test(generate, makes_an_incomplete_map_in_the_cache_again_until_it_is_whole)
{
	char *assembly = scratch_path(input, "App.dll"), *platform = scratch_path(scratch, "fw");
	char *lib = scratch_path(platform, "Lib.dll");

	cr_assert(!mkdir(platform, 0755));
	write_app(assembly);
	write_lib(lib);
	expect_incomplete(RUN("generate", assembly));
	expect_incomplete(RUN("generate", assembly));
	expect_end(RUN("generate", assembly, "--platform", platform), 0,
		   "map generation: 1 succeeded, 0 without precompiled code, 0 failed\n");
	/* A complete map is not changed. */
	expect_end(RUN("generate", assembly), 0,
		   "map generation: 1 succeeded, 0 without precompiled code, 0 failed\n");
	free(lib);
	free(platform);
	free(assembly);
}

/* In the cache: the only map below the only key. */
static char *cached_map(void)
{
	char *cache = scratch_path(scratch, "cache/dotnet-mapgen"), *keyed = NULL, *path;
	DIR *entries = opendir(cache);
	struct dirent *entry;

	cr_assert(entries);
	while (!keyed && (entry = readdir(entries)))
		if (entry->d_name[0] != '.')
			keyed = scratch_path(cache, entry->d_name);
	closedir(entries);
	cr_assert(keyed);
	path = only_map(keyed);
	free(keyed);
	free(cache);
	return path;
}

Test(generate, makes_a_map_in_the_cache_again_that_was_cut)
{
	char *assembly = scratch_path(input, "sample.dll"), *path, *text, *again;
	size_t size_bytes;

	copy_sample(assembly);
	expect_end(RUN("generate", assembly), 0,
		   "map generation: 1 succeeded, 0 without precompiled code, 0 failed\n");
	path = cached_map();
	text = scratch_read(path, &size_bytes);
	scratch_write(path, text, size_bytes / 2);
	expect_end(RUN("generate", assembly), 0,
		   "map generation: 1 succeeded, 0 without precompiled code, 0 failed\n");
	again = scratch_read(path, NULL);
	cr_expect_str_eq(again, text);
	free(again);
	free(text);
	free(path);
	free(assembly);
}

Test(generate, refuses_a_cache_that_others_may_write)
{
	char *assembly = scratch_path(input, "sample.dll");
	char *cache = scratch_path(scratch, "cache"), *own = scratch_path(cache, "dotnet-mapgen");
	struct program_run done;

	copy_sample(assembly);
	cr_assert(!mkdir(cache, 0700) && !mkdir(own, 0700) && !chmod(own, 0770));
	done = RUN("generate", assembly);
	cr_expect_eq(done.exit_code, 1);
	cr_expect_eq(count_lines(done.err), 1);
	cr_expect(strstr(done.err, "0770"), "%s", done.err);
	program_run_deinit(&done);
	cr_assert(!rmdir(own) && !symlink("/tmp", own));
	done = RUN("generate", assembly);
	cr_expect_eq(done.exit_code, 1, "a link was followed: %s", done.out);
	program_run_deinit(&done);
	free(own);
	free(cache);
	free(assembly);
}

Test(generate, takes_assemblies_of_a_directory_at_any_depth)
{
	char *deep = scratch_path(input, "a"), *assembly = scratch_path(deep, "sample.dll");
	char *other = scratch_path(input, "notes.txt"), *link = scratch_path(input, "loop");

	cr_assert(!mkdir(deep, 0755) && !symlink(input, link));
	copy_sample(assembly);
	scratch_write(other, "no assembly", 11);
	expect_end(RUN("generate", input, "-o", output), 0,
		   "map generation: 1 succeeded, 0 without precompiled code, 0 failed\n");
	free(link);
	free(other);
	free(assembly);
	free(deep);
}

Test(generate, broken_files_cost_only_themselves)
{
	static const struct {
		const char *name;
		size_t size_bytes;
	} cuts[] = { { "empty.dll", 0 }, { "header.dll", 100 }, { "cut.dll", 9000 } };
	char *assembly = scratch_path(input, "sample.dll"), *text = scratch_path(input, "text.dll");
	char *il = scratch_path(input, "il.dll"), *bytes;
	struct program_run done;
	size_t size_bytes;

	copy_sample(assembly);
	bytes = scratch_read(assembly, &size_bytes);
	for (size_t i = 0; i < 3; i++) {
		char *path = scratch_path(input, cuts[i].name);

		scratch_write(path, bytes, cuts[i].size_bytes);
		free(path);
	}
	scratch_write(text, "not a PE file\n", 14);
	free(bytes);
	bytes = scratch_read("fixtures/prebuilt/sample.dll", &size_bytes);
	cr_assert(bytes);
	scratch_write(il, bytes, size_bytes);
	free(bytes);
	done = RUN("generate", input, "-o", output);
	for (size_t i = 0; i < 3; i++)
		cr_expect(strstr(done.err, cuts[i].name), "%s is not listed", cuts[i].name);
	cr_expect(strstr(done.err, "text.dll"));
	cr_expect_eq(count_lines(done.err), 4, "%s", done.err);
	expect_end(done, 3, "map generation: 1 succeeded, 1 without precompiled code, 4 failed\n");
	free(il);
	free(text);
	free(assembly);
}

/* The sample with a method of another name. */
static void copy_renamed_sample(const char *path)
{
	static const char name[] = "ToString";
	size_t size_bytes;
	char *bytes = scratch_read("fixtures/recorded/opt/sample/sample.dll", &size_bytes), *at;

	cr_assert(bytes);
	at = memmem(bytes, size_bytes, name, sizeof(name));
	cr_assert(at);
	at[2] = 's';
	scratch_write(path, bytes, size_bytes);
	free(bytes);
}

static void expect_two_maps(const char *first, const char *second)
{
	struct program_run done = RUN("generate", first, second, "-o", output);
	char *path;

	cr_expect(strstr(done.err, "other content"), "%s", done.err);
	expect_end(done, 0, "map generation: 2 succeeded, 0 without precompiled code, 0 failed\n");
	path = only_map(output);
	free(path);
}

/* A file is where the directory of the second map would be. */
static void take_place_of_the_second(const char *first, const char *second)
{
	DIR *listing = opendir(output);
	struct dirent *entry;
	char *place = NULL;

	while ((entry = readdir(listing)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			place = scratch_path(output, entry->d_name);
	closedir(listing);
	cr_assert(place);
	scratch_remove(strdup(place));
	scratch_write(place, "", 0);
	expect_end(RUN("generate", first, second, "-o", output), 3,
		   "map generation: 1 succeeded, 0 without precompiled code, 1 failed\n");
	cr_assert_eq(unlink(place), 0);
	free(place);
}

Test(generate, two_maps_of_one_name_are_both_kept)
{
	char *first = scratch_path(input, "sample.dll"), *deep = scratch_path(input, "z");
	char *second = scratch_path(deep, "sample.dll");
	struct program_run done;

	cr_assert(!mkdir(deep, 0755));
	copy_sample(first);
	copy_renamed_sample(second);
	expect_two_maps(first, second);
	expect_two_maps(first, second);
	take_place_of_the_second(first, second);
	/* Another content with the same map needs no map of its own. */
	copy_other_sample(second);
	done = RUN("generate", first, second, "-o", output);
	cr_expect_not(strstr(done.err, "its map is"), "%s", done.err);
	expect_end(done, 0, "map generation: 2 succeeded, 0 without precompiled code, 0 failed\n");
	free(second);
	free(deep);
	free(first);
}

Test(generate, what_is_missing_or_empty_is_said)
{
	struct program_run done = RUN("generate", "/nonexistent/x.dll", "-o", output);

	cr_expect(strstr(done.err, "/nonexistent/x.dll"));
	expect_end(done, 1, "map generation: 0 succeeded, 0 without precompiled code, 1 failed\n");
	done = RUN("generate", input, "-o", output);
	cr_expect_eq(done.exit_code, 1);
	cr_expect(strstr(done.err, "no assemblies"), "%s", done.err);
	program_run_deinit(&done);
	done = RUN("generate", "/dev/null", "-o", output);
	cr_expect(strstr(done.err, "not a regular file"), "%s", done.err);
	expect_end(done, 1, "map generation: 0 succeeded, 0 without precompiled code, 1 failed\n");
}

Test(generate, no_progress_bar_in_a_pipe)
{
	char *assembly = scratch_path(input, "sample.dll");
	struct program_run done;

	copy_sample(assembly);
	done = RUN("generate", assembly, "-o", output);
	cr_expect_str_eq(done.err, "");
	program_run_deinit(&done);
	free(assembly);
}

Test(generate, json_lists_every_image)
{
	char *assembly = scratch_path(input, "sample.dll");
	struct program_run done;

	copy_sample(assembly);
	done = RUN("generate", assembly, "/nonexistent.dll", "-o", output, "--json");
	cr_expect(strstr(done.out, "\"succeeded\": 1"), "%s", done.out);
	cr_expect(strstr(done.out, "\"failed\": 1"), "%s", done.out);
	cr_expect(strstr(done.out, "\"outcome\": \"made\""), "%s", done.out);
	cr_expect_eq(done.exit_code, 3);
	program_run_deinit(&done);
	free(assembly);
}

/* ---- a crossgen that is none --------------------------------------------- */

static struct program_run run_crossgen(const char *script)
{
	char *assembly = scratch_path(input, "sample.dll");
	char *crossgen = scratch_path(scratch, "crossgen");
	struct program_run done;

	copy_sample(assembly);
	scratch_write(crossgen, script, strlen(script));
	cr_assert(!chmod(crossgen, 0755));
	done = RUN("generate", assembly, "-o", output, "--crossgen", crossgen, "--platform=/p/one",
		   "--platform=/p two");
	free(crossgen);
	free(assembly);
	return done;
}

static void expect_failure(struct program_run done, const char *words)
{
	cr_expect(strstr(done.err, words), "'%s' is not in: %s", words, done.err);
	expect_end(done, 1, "map generation: 0 succeeded, 0 without precompiled code, 1 failed\n");
}

Test(generate, takes_the_map_that_crossgen_made)
{
	struct program_run done = run_crossgen("#!/bin/sh\n"
					       "[ \"$1\" = /CreatePerfMap ] || exit 9\n"
					       "[ \"$3\" = /Platform_Assemblies_Paths ] || exit 9\n"
					       "[ \"$4\" = '/p/one:/p two' ] || exit 9\n"
					       "echo \"00001000 20 from $(basename $5)\" > "
					       "\"$2/sample.ni.{x}.map\"\n");
	char *path, *text;

	expect_end(done, 0, "map generation: 1 succeeded, 0 without precompiled code, 0 failed\n");
	path = only_map(output);
	text = scratch_read(path, NULL);
	cr_expect_str_eq(text, "00001000 20 from sample.dll\n");
	free(text);
	free(path);
}

Test(generate, believes_crossgen_only_with_exit_status_0_and_a_map)
{
	expect_failure(
		run_crossgen("#!/bin/sh\necho noise\necho 'Error: no native image'\nexit 100\n"),
		"exit status 100: Error: no native image");
	expect_failure(run_crossgen("#!/bin/sh\necho Successfully generated perfmap\nexit 0\n"),
		       "wrote no map");
	expect_failure(run_crossgen("#!/bin/sh\n: > \"$2/a.map\"\nexit 0\n"), "empty map");
	expect_failure(run_crossgen("#!/bin/sh\nkill -SEGV $$\n"), "signal 11");
	expect_failure(run_crossgen("not a program\n"), "cannot run");
}

static void expect_empty(const char *directory)
{
	DIR *entries = opendir(directory);
	struct dirent *entry;

	cr_assert(entries, "%s", directory);
	while ((entry = readdir(entries)))
		cr_expect(!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."), "%s",
			  entry->d_name);
	closedir(entries);
}

Test(generate, leaves_nothing_of_crossgen_behind)
{
	struct program_run done =
		run_crossgen("#!/bin/sh\n: > \"$2/a.map\"; : > \"$2/b\"\nexit 1\n");

	program_run_deinit(&done);
	expect_empty(output);
}

Test(generate, does_not_wait_for_what_crossgen_left_running)
{
	struct program_run done =
		run_crossgen("#!/bin/sh\necho '00001000 20 x' > \"$2/a.map\"\nsleep 1000 &\n");

	expect_end(done, 0, "map generation: 1 succeeded, 0 without precompiled code, 0 failed\n");
}

Test(generate, interrupted_it_leaves_nothing_of_crossgen)
{
	char *assembly = scratch_path(input, "sample.dll"), *started = scratch_path(scratch, "pid");
	char *crossgen = scratch_path(scratch, "crossgen"), *script, *text = NULL;
	const char *const arguments[] = { "generate",   assembly, "-o", output,
					  "--crossgen", crossgen, NULL };
	pid_t program;
	int status;

	copy_sample(assembly);
	cr_assert(asprintf(&script, "#!/bin/sh\necho $$ > '%s.new'; mv '%s.new' '%s'\nsleep 1000\n",
			   started, started, started) > 0);
	scratch_write(crossgen, script, strlen(script));
	cr_assert(!chmod(crossgen, 0755));
	program = program_start(scratch, arguments);
	for (int turn = 0; !text && wait_turn(turn); turn++)
		text = scratch_read(started, NULL);
	cr_assert(text, "crossgen was not started");
	kill(program, SIGTERM);
	waitpid(program, &status, 0);
	cr_expect(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	cr_expect(kill((pid_t)strtol(text, NULL, 10), 0), "it is still running");
	expect_empty(output);
	free(text);
	free(script);
	free(crossgen);
	free(started);
	free(assembly);
}
