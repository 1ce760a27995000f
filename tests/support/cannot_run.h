/* SPDX-License-Identifier: MIT */
/* Tests that cannot run on every machine. */
#ifndef TESTS_SUPPORT_CANNOT_RUN_H
#define TESTS_SUPPORT_CANNOT_RUN_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*
 * Ends a test that misses something. It is skipped, but fails with CI=true: that machine has
 * everything, and a test that does not run there proves nothing.
 */
static inline void cannot_run(const char *why)
{
	const char *ci = getenv("CI");

	if (ci && !strcmp(ci, "true"))
		cr_assert_fail("cannot run here: %s", why);
	cr_skip_test("%s", why);
}

static inline void need_root(void)
{
	if (geteuid() != 0)
		cannot_run("needs root");
}

#endif
