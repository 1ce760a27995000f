/* SPDX-License-Identifier: MIT */
/* The examples of the specification (dotnet/designs, source-link.md), then hostile texts. */
#include "mapgen/debuginfo/source_link.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/alloc_fail.h"

static void expect_url(const char *text, const char *file, const char *expected)
{
	struct source_link *link AUTO_SOURCE_LINK = NULL;
	struct sym_error *error = source_link_parse(text, strlen(text), &link);
	struct buf url;

	cr_assert_null(error, "%s", sym_error_message(error));
	buf_init(&url, 1 << 16);
	cr_expect_eq(source_link_write_url(link, file, &url), expected != NULL, "%s", file);
	buf_append_char(&url, '\0');
	cr_expect_str_eq(url.data, expected ? expected : "");
	buf_deinit(&url);
}

static void expect_refused(const char *text, enum sym_error_code code)
{
	struct source_link *link = NULL;
	struct sym_error *error = source_link_parse(text, strlen(text), &link);

	cr_expect_not_null(error, "%s", text);
	cr_expect_null(link);
	cr_expect_eq(sym_error_code(error), code, "%s", sym_error_message(error));
	sym_error_destroy(error);
}

static const char example[] =
	"{\"documents\": {"
	"\"C:\\\\src\\\\CodeFormatter\\\\*\": \"https://example.com/format/4d38/*\","
	"\"C:\\\\src\\\\CodeFormatter\\\\lib\\\\*\": \"https://example.com/lib/77ab/*?raw\","
	"\"/src/one.cs\": \"http://example.com/one.cs\"}, \"other\": [1]}";

Test(source_link, puts_the_rest_of_a_path_in_place_of_the_asterisk)
{
	expect_url(example, "C:\\src\\CodeFormatter\\src\\Program.cs",
		   "https://example.com/format/4d38/src/Program.cs");
}

Test(source_link, takes_the_longest_path_that_fits)
{
	expect_url(example, "C:\\src\\CodeFormatter\\lib\\a.cs",
		   "https://example.com/lib/77ab/a.cs?raw");
}

Test(source_link, knows_single_files)
{
	expect_url(example, "/src/one.cs", "http://example.com/one.cs");
	expect_url(example, "/src/one.cs2", NULL);
	expect_url(example, "/src/two.cs", NULL);
}

Test(source_link, ignores_case)
{
	expect_url(example, "c:\\SRC\\codeformatter\\A.cs", "https://example.com/format/4d38/A.cs");
}

Test(source_link, escapes_what_urls_cannot_have)
{
	expect_url(example, "C:\\src\\CodeFormatter\\a b#\xc3\xa4\n\".cs",
		   "https://example.com/format/4d38/a%20b%23%C3%A4%0A%22.cs");
}

Test(source_link, accepts_a_byte_order_mark)
{
	expect_url("\xef\xbb\xbf{\"documents\": {\"/*\": \"https://a/*\"}}", "/x", "https://a/x");
}

Test(source_link, may_have_no_documents)
{
	expect_url("{\"documents\": {}}", "/x", NULL);
}

Test(source_link, refuses_what_is_no_source_link)
{
	static const char *const texts[] = {
		"",
		"{",
		"[]",
		"{}",
		"{\"documents\": []}",
		"{\"documents\": {\"/*\": 1}}",
		"{\"documents\": {\"/*\": \"https://a/*\"}} x",
		"{\"documents\": {\"/a\": \"https://a\", \"/a\": \"https://b\"}}",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		expect_refused(texts[i], SYM_ERROR_FORMAT);
}

Test(source_link, refuses_asterisks_in_other_places)
{
	expect_refused("{\"documents\": {\"/*/a\": \"https://a/*\"}}", SYM_ERROR_FORMAT);
	expect_refused("{\"documents\": {\"/**\": \"https://a/*\"}}", SYM_ERROR_FORMAT);
	expect_refused("{\"documents\": {\"/*\": \"https://a/\"}}", SYM_ERROR_FORMAT);
	expect_refused("{\"documents\": {\"/a\": \"https://a/*\"}}", SYM_ERROR_FORMAT);
	expect_refused("{\"documents\": {\"/*\": \"https://a/*/*\"}}", SYM_ERROR_FORMAT);
}

Test(source_link, refuses_urls_that_are_not_of_the_web)
{
	static const char *const urls[] = { "javascript:alert(1)//", "file:///etc/",
					    "https://a b/",          "https://a/\\u001b[2J",
					    "https://a/\\\"",        "https://a/<b>",
					    "https://\\u00e4/",      "" };
	char text[256];

	for (size_t i = 0; i < sizeof(urls) / sizeof(*urls); i++) {
		snprintf(text, sizeof(text), "{\"documents\": {\"/a\": \"%s\"}}", urls[i]);
		expect_refused(text, SYM_ERROR_FORMAT);
	}
}

Test(source_link, refuses_a_text_that_is_nested_or_long)
{
	const size_t size_bytes = 2 << 20;
	char *text = malloc(size_bytes + 1);

	cr_assert(text);
	memset(text, '[', size_bytes);
	text[size_bytes] = '\0';
	expect_refused(text, SYM_ERROR_LIMIT);
	text[size_bytes / 4] = '\0';
	expect_refused(text, SYM_ERROR_FORMAT);
	free(text);
}
