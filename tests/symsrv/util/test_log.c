/* SPDX-License-Identifier: MIT */
/* Which messages are written. */
#include <criterion/criterion.h>

#include "symsrv/util/log.h"

Test(log_limit, allows_one_message_an_hour)
{
	const int64_t hour_ms = 3600000;
	struct log_limit limit = { 0 }, other = { 0 };

	cr_expect(log_limit_allows(&limit, 50));
	cr_expect_not(log_limit_allows(&limit, 50));
	cr_expect_not(log_limit_allows(&limit, 49 + hour_ms));
	cr_expect(log_limit_allows(&other, 51), "another kind");
	cr_expect(log_limit_allows(&limit, 50 + hour_ms));
	cr_expect_not(log_limit_allows(&limit, 51 + hour_ms));
}
