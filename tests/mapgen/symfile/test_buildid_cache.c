/* SPDX-License-Identifier: MIT */
/* Files in perf's build-id cache are where perf looks them up, and existing files stay. */
#include "libsym/error.h"
#include "mapgen/symfile/buildid_cache.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/program.h"

static const uint8_t id[SYMFILE_ID_BYTES] = { 0x64, 0x6e };
static char *scratch;

static void set_up(void)
{
	scratch = scratch_create();
}

static void tear_down(void)
{
	scratch_remove(scratch);
}

TestSuite(buildid_dir, .init = set_up, .fini = tear_down);

static struct sym_error *put(const char *name, const char *text, bool *new_ret)
{
	return buildid_dir_put(scratch, id, name, text, strlen(text), new_ret);
}

static void expect_put(const char *name, const char *text, bool is_new)
{
	bool was_new = !is_new;
	struct sym_error *failure = put(name, text, &was_new);

	cr_expect_null(failure, "%s", failure ? sym_error_message(failure) : "");
	cr_expect_eq(was_new, is_new);
	sym_error_destroy(failure);
}

/* The path that perf uses. */
static void expect_found(const char *text)
{
	char digits[2 * SYMFILE_ID_BYTES + 1], name[128];
	char *path, *found;

	for (size_t i = 0; i < SYMFILE_ID_BYTES; i++)
		snprintf(digits + 2 * i, 3, "%02x", id[i]);
	snprintf(name, sizeof(name), ".build-id/%.2s/%s/elf", digits, digits + 2);
	path = scratch_path(scratch, name);
	found = scratch_read(path, NULL);
	cr_expect_str_eq(found ? found : "(none)", text);
	free(found);
	free(path);
}

Test(buildid_dir, finds_what_was_put_by_its_id)
{
	expect_put("ga", "names", true);
	expect_found("names");
	expect_put("ga", "names", false);
	expect_put("ga", "more names", true);
	expect_found("more names");
}

Test(buildid_dir, serves_files_of_several_names_with_the_same_content)
{
	expect_put("ga", "names", true);
	expect_put("gb", "names", false);
	expect_found("names");
}

Test(buildid_dir, leaves_another_content_of_the_same_id)
{
	bool is_new;
	struct sym_error *failure;

	expect_put("ga", "names", true);
	failure = put("gb", "others", &is_new);
	cr_assert_not_null(failure);
	cr_expect(strstr(sym_error_message(failure), "leads to"), "%s",
		  failure ? sym_error_message(failure) : "");
	sym_error_destroy(failure);
	expect_found("names");
}
