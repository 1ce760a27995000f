/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/clr/contract.h"
#include "libsym/limits.h"

static const char small[] =
	"{\"version\":0,\"baseline\":\"empty\","
	"\"types\":{\"T\":{\"!\":24,\"A\":8,\"B\":[16,\"pointer\"],\"Far\":70000,\"No\":-1},"
	"\"Empty\":{},\"Zero\":{\"!\":0}},"
	"\"globals\":{\"Hex\":[\"0xff\",\"uint8\"],\"Plain\":7,\"Dec\":\"12\",\"Junk\":[\"0xfg\","
	"\"x\"],"
	"\"P\":[[1],\"pointer\"],\"Q\":[[2],\"pointer\"],\"Architecture\":[\"x64\",\"string\"]},"
	"\"contracts\":{\"One\":1,\"Text\":\"c1\"}}";

static const struct contract_version first_version = { 1, "c1" }, second_version = { 2, "c2" };

static struct contract *parse_small(void)
{
	static const uint64_t pointers[] = { 0x1000, 0x2000 };
	struct contract *contract = NULL;

	cr_assert_null(contract_parse(small, sizeof(small), pointers, 2, &contract));
	return contract;
}

static void assert_refused(struct sym_error *error, const char *word)
{
	cr_assert_not_null(error, "%s was accepted", word);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_UNSUPPORTED);
	cr_assert(strstr(sym_error_message(error), word), "%s does not name %s",
		  sym_error_message(error), word);
	sym_error_destroy(error);
}

Test(contract, returns_offsets_sizes_numbers_pointers_and_texts)
{
	AUTO_CONTRACT struct contract *contract = parse_small();
	uint32_t offset = 0, size = 0;
	uint64_t number = 0;

	cr_assert_null(contract_field(contract, "T", "A", &offset));
	cr_assert_eq(offset, 8);
	cr_assert_null(contract_field(contract, "T", "B", &offset));
	cr_assert_eq(offset, 16);
	cr_assert_null(contract_type_size(contract, "T", &size));
	cr_assert_eq(size, 24);
	cr_assert_null(contract_number(contract, "Hex", &number));
	cr_assert_eq(number, 255);
	cr_assert_null(contract_number(contract, "Plain", &number));
	cr_assert_eq(number, 7);
	cr_assert_null(contract_number(contract, "Dec", &number));
	cr_assert_eq(number, 12);
	cr_assert_null(contract_pointer(contract, "P", &number));
	cr_assert_eq(number, 0x2000);
	cr_assert_str_eq(contract_string(contract, "Architecture"), "x64");
	cr_assert_null(contract_string(contract, "Nothing"));
	cr_assert_null(contract_require(contract, "One", first_version));
}

Test(contract, accepts_nul_bytes_after_the_text)
{
	struct contract *contract = NULL;
	char padded[sizeof(small) + 16] = "";

	memcpy(padded, small, sizeof(small));
	cr_assert_null(contract_parse(padded, sizeof(padded), NULL, 0, &contract));
	contract_close(contract);
}

Test(contract, names_what_is_missing_or_invalid)
{
	AUTO_CONTRACT struct contract *contract = parse_small();
	uint32_t offset;
	uint64_t number;

	assert_refused(contract_field(contract, "Nowhere", "A", &offset), "type Nowhere");
	assert_refused(contract_field(contract, "T", "C", &offset), "T.C");
	assert_refused(contract_field(contract, "T", "Far", &offset), "T.Far");
	assert_refused(contract_field(contract, "T", "No", &offset), "T.No");
	assert_refused(contract_type_size(contract, "Empty", &offset), "Empty.!");
	assert_refused(contract_type_size(contract, "Zero", &offset), "Zero.!");
	assert_refused(contract_number(contract, "Nothing", &number), "Nothing");
	assert_refused(contract_number(contract, "Junk", &number), "Junk");
	assert_refused(contract_pointer(contract, "Hex", &number), "Hex");
	assert_refused(contract_pointer(contract, "Q", &number), "Q");
}

Test(contract, rejects_other_versions_and_texts_as_versions)
{
	AUTO_CONTRACT struct contract *contract = parse_small();

	assert_refused(contract_require(contract, "One", second_version), "One has version 1");
	assert_refused(contract_require(contract, "Text", first_version),
		       "Text has version \"c1\"");
	assert_refused(contract_require(contract, "Two", first_version), "Two is missing");
}

/* As .NET 11 writes them: a number has no meaning there. */
Test(contract, reads_texts_as_versions)
{
	static const char later[] =
		"{\"version\":2,\"baseline\":\"empty\",\"types\":{\"T\":{\"A\":8}},"
		"\"globals\":{},\"subDescriptors\":{\"GC\":[[0],\"pointer\"]},"
		"\"contracts\":{\"One\":1,\"Text\":\"c1\"}}";
	struct contract *contract = NULL;

	cr_assert_null(contract_parse(later, sizeof(later), NULL, 0, &contract));
	cr_assert_null(contract_require(contract, "Text", first_version));
	assert_refused(contract_require(contract, "Text", second_version),
		       "Text has version \"c1\", not \"c2\"");
	assert_refused(contract_require(contract, "One", first_version), "One has no version");
	assert_refused(contract_require(contract, "Two", first_version), "Two is missing");
	cr_assert(contract_has_field(contract, "T", "A"));
	cr_assert_not(contract_has_field(contract, "T", "B"));
	cr_assert_not(contract_has_field(contract, "U", "A"));
	contract_close(contract);
}

Test(contract, rejects_other_versions_and_missing_parts)
{
	static const struct {
		const char *text, *word;
	} cases[] = {
		{ "{\"version\":1,\"types\":{},\"globals\":{},\"contracts\":{}}", "version 1" },
		{ "{\"version\":\"0\",\"types\":{},\"globals\":{},\"contracts\":{}}", "version" },
		{ "{\"types\":{},\"globals\":{},\"contracts\":{}}", "version" },
		{ "{\"version\":0,\"globals\":{},\"contracts\":{}}", "types" },
		{ "{\"version\":0,\"types\":{},\"contracts\":{}}", "globals" },
		{ "{\"version\":0,\"types\":{},\"globals\":{},\"contracts\":7}", "contracts" },
		{ "[]", "version" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct contract *contract = NULL;

		assert_refused(
			contract_parse(cases[i].text, strlen(cases[i].text), NULL, 0, &contract),
			cases[i].word);
		cr_assert_null(contract);
	}
}

Test(contract, rejects_malformed_text)
{
	static const char *const texts[] = { "", "{", "{\"version\":0,\"version\":0}", "nul",
					     "{\"a\":\"\xff\"}" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct contract *contract = NULL;
		AUTO_ERROR struct sym_error *error =
			contract_parse(texts[i], strlen(texts[i]), NULL, 0, &contract);

		cr_assert_not_null(error, "%s was accepted", texts[i]);
		cr_assert_eq(sym_error_code(error), SYM_ERROR_FORMAT);
	}
}

Test(contract, survives_nesting_that_would_exhaust_a_stack)
{
	size_t depth = 900000;
	char *text = malloc(depth);
	struct contract *contract = NULL;
	struct sym_error *error;

	memset(text, '[', depth);
	error = contract_parse(text, depth, NULL, 0, &contract);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_FORMAT);
	sym_error_destroy(error);
	free(text);
}

Test(contract, rejects_text_and_pointers_above_the_limits)
{
	struct contract *contract = NULL;
	struct sym_error *error =
		contract_parse(small, LIMIT_CONTRACT_BYTES + 1, NULL, 0, &contract);

	cr_assert_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	sym_error_destroy(error);
	error = contract_parse(small, sizeof(small), NULL, LIMIT_CONTRACT_POINTERS + 1, &contract);
	cr_assert_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	sym_error_destroy(error);
}
