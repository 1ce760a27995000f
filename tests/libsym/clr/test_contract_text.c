/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/clr/contract_text.h"

static struct contract_text parse(const char *bytes)
{
	struct contract_text text = { 0 };

	cr_assert_null(contract_text_parse(bytes, strlen(bytes), &text), "%s", bytes);
	return text;
}

static void assert_refused(const char *bytes, size_t size_bytes, const char *why)
{
	struct contract_text text = { 0 };
	AUTO_ERROR struct sym_error *error = contract_text_parse(bytes, size_bytes, &text);

	cr_assert_not_null(error, "%s was accepted", bytes);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_FORMAT);
	cr_assert(strstr(sym_error_message(error), why), "%s: %s does not say %s", bytes,
		  sym_error_message(error), why);
	cr_assert_null(text.bytes);
}

Test(contract_text, finds_members_after_any_other_value)
{
	struct contract_text text =
		parse(" {\"a\" : {\"x\":[1,[2,{\"b\":3}],{}]},\t\"e\":[],\"t\":\"b\",\"n\":null,\n"
		      "\"b\":-7 , \"c\":[5,\"uint8\"]}\r\n");
	const struct contract_value *root = text.values;
	const struct contract_value *value = contract_text_member(&text, root, "b");

	cr_assert_eq(value->kind, CONTRACT_NUMBER);
	cr_assert_eq(value->number, -7);
	value = contract_text_first(&text, contract_text_member(&text, root, "c"));
	cr_assert_eq(value->number, 5);
	cr_assert_str_eq(contract_text_member(&text, root, "t")->text, "b");
	cr_assert_eq(contract_text_member(&text, root, "n")->kind, CONTRACT_OTHER);
	cr_assert_null(contract_text_first(&text, contract_text_member(&text, root, "e")));
	cr_assert_null(contract_text_member(&text, root, "x"), "it is inside another");
	cr_assert_null(contract_text_member(&text, value, "x"), "a number has no members");
	cr_assert_null(contract_text_member(&text, NULL, "x"));
	contract_text_deinit(&text);
}

Test(contract_text, reads_numbers_up_to_eighteen_digits)
{
	struct contract_text text = parse("[0,-0,999999999999999999,-999999999999999999]");

	cr_assert_eq(text.values[1].number, 0);
	cr_assert_eq(text.values[2].number, 0);
	cr_assert_eq(text.values[3].number, 999999999999999999);
	cr_assert_eq(text.values[4].number, -999999999999999999);
	contract_text_deinit(&text);
}

Test(contract_text, accepts_the_same_name_in_different_objects_only)
{
	struct contract_text text = parse("{\"a\":{\"a\":{\"a\":1}},\"b\":{\"a\":1}}");

	contract_text_deinit(&text);
	assert_refused("{\"a\":{},\"b\":[1],\"a\":1}", 22, "twice");
	assert_refused("[{\"\":1,\"\":1}]", 13, "twice");
}

Test(contract_text, rejects_incomplete_and_ambiguous_text)
{
	static const char *const texts[] = {
		"",
		"  ",
		"{",
		"[",
		"[1",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"[1,]",
		"[,1]",
		"[1 2]",
		"{1:2}",
		"[1}",
		"{\"a\":1]",
		"1 2",
		"]",
		"}",
		",",
		":",
		"{,}",
		"\"a",
		"\"\\n\"",
		"\"\\u0041\"",
		"\"\t\"",
		"\"\x7f\"",
		"\"\xc3\xa4\"",
		"01",
		"-",
		"1.5",
		"1e3",
		"+1",
		"1234567890123456789",
		"tru",
		"nul",
		"True",
		"{\"a\" 1}",
		"{\"a\"::1}",
		"[1]]",
		"{}{}",
		"[1],",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_refused(texts[i], strlen(texts[i]), "byte");
	assert_refused("[1\0]", 4, "byte");
	assert_refused("\"a\0\"", 4, "byte");
}

/* Every prefix of a text is rejected, and no byte after it is read: see SAN=1. */
Test(contract_text, rejects_every_prefix_of_a_text)
{
	static const char whole[] =
		"{\"version\":0,\"types\":{\"T\":{\"!\":24,\"B\":[16,\"pointer\"]}},\"x\":true}";

	for (size_t i = 0; i + 1 < sizeof(whole); i++) {
		char *part = malloc(i + 1);

		memcpy(part, whole, i);
		assert_refused(part, i, "byte");
		free(part);
	}
}

Test(contract_text, rejects_more_names_than_the_limit)
{
	size_t count = 3000;
	char *bytes = malloc(count * 32), *at = bytes;

	*at++ = '{';
	for (size_t i = 0; i < count; i++)
		at += snprintf(at, 32, "%s\"n%zu\":%zu", i ? "," : "", i, i);
	*at++ = '}';
	assert_refused(bytes, (size_t)(at - bytes), "too many");
	free(bytes);
}
