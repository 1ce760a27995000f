/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "libsym/error.h"
#include "tests/support/alloc_fail.h"

static void expect(struct sym_error *error, enum sym_error_code code, const char *message)
{
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), code, "%s", message);
	cr_expect_str_eq(sym_error_message(error), message);
	sym_error_destroy(error);
}

Test(error, carries_code_and_message)
{
	struct sym_error *error = sym_error_create(SYM_ERROR_ARGUMENT, "%s is %d", "x", 5);

	cr_expect_null(sym_error_path(error));
	cr_expect_eq(sym_error_offset(error), UINT64_MAX);
	expect(error, SYM_ERROR_ARGUMENT, "x is 5");
}

Test(error, null_is_no_error)
{
	cr_expect_eq((int)sym_error_code(NULL), 0);
	cr_expect_str_eq(sym_error_message(NULL), "no error");
	cr_expect_null(sym_error_path(NULL));
	cr_expect_eq(sym_error_offset(NULL), UINT64_MAX);
	sym_error_destroy(NULL);
}

Test(error, begins_with_the_path_and_the_offset_where_they_are_known)
{
	struct sym_error *error =
		sym_error_create_path(SYM_ERROR_FORMAT, "/a.dll", 0x1f, "bad magic");

	cr_expect_str_eq(sym_error_path(error), "/a.dll");
	cr_expect_eq(sym_error_offset(error), 0x1f);
	expect(error, SYM_ERROR_FORMAT, "/a.dll: offset 0x1f: bad magic");
	error = sym_error_create_path(SYM_ERROR_FORMAT, "/a.dll", SYM_OFFSET_UNKNOWN, "bad");
	expect(error, SYM_ERROR_FORMAT, "/a.dll: bad");
}

Test(error, is_one_line_whatever_a_file_is_called)
{
	expect(sym_error_create_path(SYM_ERROR_IO, "/a\nb\033[2J\177", SYM_OFFSET_UNKNOWN, "no"),
	       SYM_ERROR_IO, "/a?b?[2J?: no");
}

Test(error, keeps_the_bytes_of_names_that_are_not_ascii)
{
	expect(sym_error_create(SYM_ERROR_IO, "Gr\xc3\xb6\xc3\x9f"
					      "e"),
	       SYM_ERROR_IO,
	       "Gr\xc3\xb6\xc3\x9f"
	       "e");
}

Test(error, tells_kinds_of_errno_apart)
{
	static const struct {
		int number;
		enum sym_error_code code;
	} cases[] = {
		{ ENOENT, SYM_ERROR_NOT_FOUND },
		{ ESRCH, SYM_ERROR_NOT_FOUND },
		{ ENOTDIR, SYM_ERROR_NOT_FOUND },
		{ EACCES, SYM_ERROR_PERMISSION },
		{ EPERM, SYM_ERROR_PERMISSION },
		{ EFBIG, SYM_ERROR_LIMIT },
		{ EIO, SYM_ERROR_IO },
		{ EINVAL, SYM_ERROR_IO },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char message[256];

		snprintf(message, sizeof(message), "/p: cannot open: %s",
			 strerror(cases[i].number));
		expect(sym_error_from_errno(cases[i].number, "/p", "cannot open"), cases[i].code,
		       message);
	}
	cr_expect_eq(sym_error_from_errno(ENOMEM, "/p", "cannot open"), &sym_error_no_memory);
}

Test(error, says_where_a_reader_failed)
{
	struct reader reader = reader_over("abc", 3);

	reader_skip(&reader, 2);
	reader_u32(&reader);
	expect(sym_error_from_reader(&reader, "/f", 0x100, "header"), SYM_ERROR_FORMAT,
	       "/f: offset 0x102: header: unexpected end of data");
	expect(sym_error_from_reader(&reader, NULL, 0x100, "header"), SYM_ERROR_FORMAT,
	       "header: unexpected end of data at 0x102");
}

Test(error, says_which_maximum_a_buffer_met)
{
	struct buf buf;

	buf_init(&buf, 2);
	buf_append_string(&buf, "abc");
	expect(sym_error_from_buf(&buf, "names"), SYM_ERROR_LIMIT, "names: more than 2 bytes");
	buf.failure = BUF_NO_MEMORY;
	cr_expect_eq(sym_error_from_buf(&buf, "names"), &sym_error_no_memory);
	buf_deinit(&buf);
}

Test(error, takes_the_path_of_the_file_that_a_pure_reader_did_not_know)
{
	struct sym_error *error = sym_error_create(SYM_ERROR_FORMAT, "bad magic");

	error = sym_error_with_path(error, "/f");
	cr_expect_str_eq(sym_error_path(error), "/f");
	error = sym_error_with_path(error, "/other");
	cr_expect_str_eq(sym_error_path(error), "/f", "the first path stays");
	expect(error, SYM_ERROR_FORMAT, "/f: bad magic");
	cr_expect_null(sym_error_with_path(NULL, "/f"));
}

Test(error, may_be_destroyed_without_being_one)
{
	sym_error_destroy(NULL);
	sym_error_destroy(&sym_error_no_memory);
	sym_error_destroy(&sym_error_no_memory);
	cr_expect_str_eq(sym_error_message(&sym_error_no_memory), "out of memory");
	cr_expect_eq(sym_error_code(&sym_error_no_memory), SYM_ERROR_NO_MEMORY);
}

static bool make_error(void *context)
{
	struct sym_error *error = sym_error_create_path(SYM_ERROR_FORMAT, "/f", 7, "bad");
	bool made;

	(void)context;
	error = sym_error_with_path(error, "/g");
	cr_expect_not_null(error, "an error about an error is still an error");
	made = error != &sym_error_no_memory;
	sym_error_destroy(error);
	return made;
}

Test(error, becomes_missing_memory_when_there_is_none_for_it)
{
	cr_expect_geq(alloc_fail_each(make_error, NULL), 4);
}
