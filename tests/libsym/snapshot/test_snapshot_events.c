/* SPDX-License-Identifier: MIT */
/* Sessions that cannot begin. */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <unistd.h>

#include "libsym/libsym.h"

static void expect_failure(struct sym_snapshot *snapshot, const struct sym_event_session_opts *opts,
			   enum sym_error_code code)
{
	struct sym_event_session *session = NULL;
	struct sym_error *error = sym_event_session_open(snapshot, opts, &session);

	cr_assert_not_null(error);
	cr_expect(eq(int, (int)sym_error_code(error), (int)code), "%s", sym_error_message(error));
	cr_expect_null(session);
	sym_error_destroy(error);
}

Test(snapshot_events, closes_only_its_own_descriptors_when_a_session_cannot_begin)
{
	const struct sym_event_provider provider = { .name = "Provider", .level = 1 };
	const struct sym_event_session_opts none = { .size = sizeof(none) }, one = {
		.size = sizeof(one), .providers = &provider, .provider_count = 1
	};
	struct sym_snapshot *snapshot;
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	cr_assert(ge(int, fd, 0));
	cr_assert(eq(int, dup2(fd, 0), 0)); /* 0 is a descriptor like any other */
	cr_assert_null(sym_snapshot_open(getpid(), NULL, &snapshot));
	expect_failure(snapshot, NULL, SYM_ERROR_ARGUMENT);
	expect_failure(snapshot, &none, SYM_ERROR_ARGUMENT);
	expect_failure(snapshot, &one, SYM_ERROR_NOT_FOUND);
	sym_snapshot_close(snapshot);
	cr_expect(ge(int, fcntl(0, F_GETFD), 0));
	close(fd);
}
