/* SPDX-License-Identifier: MIT */
/* Everything that was created below a directory of debug files can be removed again, and nothing
 * else is removed. */
#include "libsym/error.h"
#include "mapgen/symfile/symfile_place.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mapgen/symfile/symfile.h"
#include "tests/support/program.h"

static struct buf make(const char *origin)
{
	struct symfile elf;
	struct buf file;

	buf_init(&file, 1 << 20);
	symfile_init(&elf);
	symfile_add(&elf, 0x1000, 0x20, "N.T.M()", NULL);
	cr_assert(symfile_finish(&elf, origin, &file, NULL));
	symfile_deinit(&elf);
	return file;
}

static struct symfile_place open_place(const char *root)
{
	struct symfile_place place;
	struct sym_error *failure = symfile_place_open(&place, root, true);

	cr_assert_null(failure, "%s", failure ? sym_error_message(failure) : "");
	return place;
}

static void close_place(struct symfile_place *place)
{
	struct sym_error *failure = symfile_place_save(place);

	cr_assert_null(failure, "%s", failure ? sym_error_message(failure) : "");
	symfile_place_close(place);
}

static enum symfile_put put(struct symfile_place *place, const char *path, const char *origin)
{
	struct buf file = make(origin);
	struct sym_error *failure = NULL;
	enum symfile_put outcome =
		symfile_place_put(place, path, file.data, file.size_bytes, &failure);

	cr_assert_eq(failure != NULL, outcome == SYMFILE_FAILED);
	sym_error_destroy(failure);
	buf_deinit(&file);
	return outcome;
}

static bool exists(const char *root, const char *name)
{
	char *path = scratch_path(root, name);
	struct stat status;
	bool there = !lstat(path, &status);

	free(path);
	return there;
}

/* The program was killed here, so nothing is saved. */
Test(symfile_place, knows_what_an_interrupted_install_has_put)
{
	char *scratch = scratch_create(), *root = scratch_path(scratch, "debug");
	struct symfile_place place = open_place(root);

	cr_assert_eq(put(&place, "/usr/share/A.dll", "a"), SYMFILE_PUT);
	cr_assert_eq(put(&place, "/usr/B.dll", "b"), SYMFILE_PUT);
	symfile_place_close(&place);
	place = open_place(root);
	cr_assert_eq(place.file_count, 2);
	cr_expect_str_eq(place.files[0], "/usr/share/A.dll");
	cr_expect_null(symfile_place_remove(&place, "/usr/share/A.dll"));
	cr_expect_null(symfile_place_remove(&place, "/usr/B.dll"));
	close_place(&place);
	cr_expect_not(exists(scratch, "debug"));
	free(root);
	scratch_remove(scratch);
}

Test(symfile_place, takes_away_what_it_put_with_every_directory_that_it_made)
{
	char *scratch = scratch_create(), *root = scratch_path(scratch, "debug/here");
	struct symfile_place place = open_place(root);
	char origin[64];

	cr_assert_eq(put(&place, "/usr/share/A.dll", "first"), SYMFILE_PUT);
	cr_assert_eq(put(&place, "/usr/share/A.dll", "first"), SYMFILE_SAME);
	cr_assert_eq(put(&place, "/usr/share/A.dll", "second"), SYMFILE_PUT);
	cr_assert_eq(put(&place, "/usr/B.dll", "b"), SYMFILE_PUT);
	close_place(&place);
	place = open_place(root);
	cr_assert_eq(place.file_count, 2);
	cr_assert(symfile_place_origin(&place, "/usr/share/A.dll", origin, sizeof(origin)));
	cr_assert_str_eq(origin, "second");
	cr_assert_null(symfile_place_remove(&place, "/usr/share/A.dll"));
	close_place(&place);
	cr_assert_not(exists(root, "usr/share"));
	cr_assert(exists(root, "usr/B.dll"));
	place = open_place(root);
	cr_assert_null(symfile_place_remove(&place, "/usr/B.dll"));
	close_place(&place);
	cr_assert_not(exists(scratch, "debug/here"));
	free(root);
	scratch_remove(scratch);
}

Test(symfile_place, leaves_directories_that_were_there)
{
	char *root = scratch_create(), *directory = scratch_path(root, "usr");
	struct symfile_place place = open_place(root);

	cr_assert_eq(mkdir(directory, 0700), 0);
	cr_assert_eq(put(&place, "/usr/A.dll", "a"), SYMFILE_PUT);
	close_place(&place);
	place = open_place(root);
	cr_assert_null(symfile_place_remove(&place, "/usr/A.dll"));
	close_place(&place);
	cr_assert(exists(root, "usr"));
	cr_assert_not(exists(root, ".dotnet-mapgen"));
	free(directory);
	scratch_remove(root);
}

Test(symfile_place, touches_no_file_of_others)
{
	char *root = scratch_create(), *path = scratch_path(root, "A.dll"), *bytes;
	struct sym_error *failure;
	struct symfile_place place = open_place(root);

	scratch_write(path, "theirs", 6);
	cr_assert_eq(put(&place, "/A.dll", "a"), SYMFILE_FOREIGN);
	cr_assert_eq(put(&place, "/B.dll", "b"), SYMFILE_PUT);
	close_place(&place);
	/* A file that another program writes over ours belongs to that program. */
	free(path);
	path = scratch_path(root, "B.dll");
	scratch_write(path, "theirs", 6);
	place = open_place(root);
	failure = symfile_place_remove(&place, "/B.dll");
	cr_assert_not_null(failure);
	sym_error_destroy(failure);
	close_place(&place);
	bytes = scratch_read(path, NULL);
	cr_assert_str_eq(bytes, "theirs");
	free(bytes);
	free(path);
	scratch_remove(root);
}

/* The list has one line for each path: text behind a line break would be another path. */
Test(symfile_place, refuses_a_path_that_its_list_cannot_hold)
{
	char *root = scratch_create();
	struct symfile_place place = open_place(root);

	cr_assert_eq(put(&place, "/a\nF /b.dll", "a"), SYMFILE_FAILED);
	cr_assert_eq(put(&place, "/../a.dll", "a"), SYMFILE_FAILED);
	cr_assert_eq(place.file_count, 0);
	close_place(&place);
	cr_assert_not(exists(root, ".dotnet-mapgen"));
	scratch_remove(root);
}

Test(symfile_place, believes_no_line_that_leads_out_of_the_directory)
{
	static const char list[] =
		"F /../outside\nF relative\nD /..\nX /a\nF /a/../b\nF /good.dll\n";
	char *root = scratch_create(), *path = scratch_path(root, ".dotnet-mapgen");
	struct symfile_place place;

	scratch_write(path, list, sizeof(list) - 1);
	place = open_place(root);
	cr_assert_eq(place.file_count, 1);
	cr_assert_str_eq(place.files[0], "/good.dll");
	cr_assert_eq(place.directory_count, 0);
	symfile_place_close(&place);
	free(path);
	scratch_remove(root);
}

Test(symfile_place, removal_prints_json_when_that_is_asked_for)
{
	char *scratch = scratch_create(), *root = scratch_path(scratch, "debug");
	struct symfile_place place = open_place(root);
	struct program_run run;
	long long removed = -1, left = -1;
	json_t *object, *failures;

	cr_assert_eq(put(&place, "/nowhere/A.dll", "a"), SYMFILE_PUT);
	cr_assert_eq(put(&place, "/nowhere/B.dll", "b"), SYMFILE_PUT);
	close_place(&place);
	run = program_run(scratch, NULL,
			  (const char *[]){ "standin", "remove", "--json", "--debug-tree", root,
					    "/nowhere/A.dll", NULL });
	cr_assert_eq(run.exit_code, 0, "%s", run.err);
	object = json_loads(run.out, 0, NULL);
	cr_assert_not_null(object, "%s", run.out);
	cr_assert_eq(json_unpack(object, "{s:I, s:I, s:o}", "removed", &removed, "left", &left,
				 "failures", &failures),
		     0);
	cr_expect_eq(removed, 1);
	cr_expect_eq(left, 1);
	cr_expect_eq(json_array_size(failures), 0);
	cr_expect_not(exists(root, "nowhere/A.dll"));
	cr_expect(exists(root, "nowhere/B.dll"));
	json_decref(object);
	program_run_deinit(&run);
	free(root);
	scratch_remove(scratch);
}
