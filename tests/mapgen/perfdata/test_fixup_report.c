/* SPDX-License-Identifier: MIT */
/* perf-fix --undo, as a user runs it. */
#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/program.h"

static const char record[] = "dotnet-mapgen undo 1\n- 2 6364 7879\n";
static char *scratch, *data;

static void set_up(void)
{
	char *undo;

	scratch = scratch_create();
	data = scratch_path(scratch, "perf.data");
	undo = scratch_path(scratch, "perf.data.undo");
	scratch_write(data, "abxyef", 6);
	scratch_write(undo, record, sizeof(record) - 1);
	free(undo);
}

static void tear_down(void)
{
	free(data);
	scratch_remove(scratch);
}

TestSuite(perf_fix_report, .init = set_up, .fini = tear_down);

static struct program_run undo(const char *option)
{
	const char *const arguments[] = { "perf-fix", "--undo", data, option, NULL };
	struct program_run done = program_run(scratch, NULL, arguments);
	char *text = scratch_read(data, NULL);

	cr_expect_eq(done.exit_code, 0, "%s", done.err);
	cr_expect_str_eq(text ? text : "", "abcdef");
	free(text);
	return done;
}

Test(perf_fix_report, prints_how_many_records_were_restored)
{
	struct program_run done = undo(NULL);

	cr_expect(strstr(done.out, "1 records restored"), "%s", done.out);
	program_run_deinit(&done);
}

Test(perf_fix_report, says_it_as_json_when_told_to)
{
	struct program_run done = undo("--json");
	json_t *told = json_loads(done.out, 0, NULL);

	cr_assert_not_null(told, "%s", done.out);
	cr_expect_str_eq(json_string_value(json_object_get(told, "output")), data);
	cr_expect_eq(json_integer_value(json_object_get(told, "records_put_back")), 1);
	json_decref(told);
	program_run_deinit(&done);
}
