/* SPDX-License-Identifier: MIT */
/* The files of debug symbols on the disk. tests/symsrv and tests/native test what servers send. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "tests/support/program.h"

static size_t entries_of(const char *path)
{
	DIR *listing GUARDED(dir) = opendir(path);
	size_t count = 0;

	cr_assert_not_null(listing, "%s", path);
	while (readdir(listing))
		count++;
	return count - 2; /* "." and ".." */
}

Test(symbols_fetch, leaves_no_directory_for_what_it_did_not_get)
{
	char *scratch = scratch_create(), *store = scratch_path(scratch, "store"),
	     *ids = scratch_path(store, ".build-id");
	char pid[16], option[256];
	/* Port 1 has no listener. */
	const char *const arguments[] = { "fetch-symbols", "--server=http://127.0.0.1:1", option,
					  pid, NULL };
	struct program_run done;

	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(option, sizeof(option), "--debug-tree=%s", store);
	done = program_run(scratch, NULL, arguments);
	if (!strstr(done.out, "127.0.0.1:1"))
		cr_skip_test("all symbols of this process are here, or libcurl is not");
	cr_expect_eq(entries_of(ids), 0);
	program_run_deinit(&done);
	free(ids);
	free(store);
	scratch_remove(scratch);
}
