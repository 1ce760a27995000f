/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "tests/support/alloc_fail.h"

Test(buf, collects_appended_bytes)
{
	struct buf buf;

	buf_init(&buf, 1000);
	cr_expect(buf_append_string(&buf, "ab"));
	cr_expect(buf_append_char(&buf, 'c'));
	cr_expect(buf_append(&buf, "\0d", 2));
	cr_expect(buf_printf(&buf, "%d%s", 42, "x"));
	cr_expect_eq(buf.size_bytes, 8);
	cr_expect(!memcmp(buf_string(&buf), "abc\0d42x", 9),
		  "the NUL behind the end is not counted");
	cr_expect_eq(buf.size_bytes, 8);
	buf_deinit(&buf);
}

Test(buf, appends_nothing_from_null)
{
	struct buf buf;

	buf_init(&buf, 10);
	cr_expect(buf_append(&buf, NULL, 0));
	cr_expect_eq(buf.size_bytes, 0);
	cr_expect_str_eq(buf_string(&buf), "");
	buf_deinit(&buf);
}

Test(buf, grows_to_its_maximum_and_not_beyond)
{
	struct buf buf;

	buf_init(&buf, 200);
	for (size_t i = 0; i < 200; i++)
		cr_assert(buf_append_char(&buf, 'x'), "byte %zu", i);
	cr_expect_not(buf_append_char(&buf, 'y'));
	cr_expect_eq(buf.failure, BUF_TOO_BIG);
	cr_expect_eq(buf.size_bytes, 200);
	cr_expect_leq(buf.capacity_bytes, 200);
	buf_deinit(&buf);
}

Test(buf, keeps_its_first_failure_until_it_is_cleared)
{
	struct buf buf;

	buf_init(&buf, 4);
	cr_expect(buf_append_string(&buf, "ab"));
	cr_expect_not(buf_append_string(&buf, "cde"));
	cr_expect_not(buf_append_char(&buf, 'c'),
		      "there is room, but something is missing before it");
	cr_expect_not(buf_printf(&buf, "c"));
	cr_expect_null(buf_string(&buf));
	cr_expect_null(buf_steal(&buf, NULL));
	buf_clear(&buf);
	cr_expect_eq(buf.size_bytes, 0);
	cr_expect(buf_append_string(&buf, "abc"));
	cr_expect_str_eq(buf_string(&buf), "abc");
	buf_deinit(&buf);
}

Test(buf, rejects_a_size_that_overflows)
{
	struct buf buf;

	buf_init(&buf, SIZE_MAX);
	cr_expect(buf_append_char(&buf, 'x'));
	cr_expect_null(buf_reserve(&buf, SIZE_MAX));
	cr_expect_eq(buf.failure, BUF_TOO_BIG);
	buf_deinit(&buf);
}

Test(buf, hands_out_its_content)
{
	size_t size_bytes = 0;
	struct buf buf;
	char *text;

	buf_init(&buf, 100);
	buf_append_string(&buf, "text");
	text = buf_steal(&buf, &size_bytes);
	cr_expect_str_eq(text, "text");
	cr_expect_eq(size_bytes, 4);
	cr_expect_null(buf.data);
	cr_expect(buf_append_string(&buf, "again"), "an emptied buffer can be used on");
	cr_expect_str_eq(text, "text");
	free(text);
	buf_deinit(&buf);
}

Test(buf, distinguishes_out_of_memory_from_its_maximum)
{
	struct buf buf;

	buf_init(&buf, 1000);
	alloc_fail_after(0);
	cr_expect_not(buf_append_string(&buf, "text"));
	cr_expect(alloc_fail_stop());
	cr_expect_eq(buf.failure, BUF_NO_MEMORY);
	buf_deinit(&buf);
}

Test(buf, keeps_its_content_when_growing_fails)
{
	struct buf buf;

	buf_init(&buf, 1000);
	buf_append_string(&buf, "kept");
	alloc_fail_after(0);
	cr_expect_not(buf_append(&buf, (char[500]){ 0 }, 500));
	cr_expect(alloc_fail_stop());
	cr_expect(buf.size_bytes == 4 && !memcmp(buf.data, "kept", 4));
	buf_deinit(&buf);
}
