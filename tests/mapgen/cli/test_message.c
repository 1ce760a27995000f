/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/message.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect_reason(const char *subject, const char *reason, const char *kept)
{
	struct failures failures = { 0 };

	failures_add(&failures, subject, strdup(reason));
	cr_assert_eq(failures.count, 1);
	cr_expect_str_eq(failures.items[0].subject, subject);
	cr_expect_str_eq(failures.items[0].reason, kept);
	failures_deinit(&failures);
}

Test(message, names_the_subject_of_a_failure_once)
{
	expect_reason("/tmp/perf-7.map", "/tmp/perf-7.map: belongs to uid 1", "belongs to uid 1");
	expect_reason("/tmp/perf-7.map", "belongs to uid 1", "belongs to uid 1");
	expect_reason("/tmp/a", "/tmp/ab: malformed", "/tmp/ab: malformed");
	expect_reason("/tmp/a", "/tmp/a is malformed", "/tmp/a is malformed");
	expect_reason("", ": malformed", ": malformed");
}
