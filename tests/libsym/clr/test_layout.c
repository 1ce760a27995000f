/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/clr/layout.h"
#include "libsym/clr/remote_memory.h"
#include "tests/support/clr_image.h"

/* The contract of the made-up runtime with `from`, which it has once, replaced by `to`. */
static struct contract *parse_with(const char *from, const char *to)
{
	static const uint64_t pointers[2];
	const char *text = clr_image_contract(), *found = strstr(text, from);
	size_t before = (size_t)(found - text);
	struct contract *contract = NULL;
	struct buf changed;

	cr_assert_not_null(found);
	cr_assert_null(strstr(found + 1, from), "%s is there twice", from);
	buf_init(&changed, 1 << 20);
	buf_append(&changed, text, before);
	buf_append_string(&changed, to);
	buf_append_string(&changed, found + strlen(from));
	cr_assert_null(contract_parse(changed.data, changed.size_bytes, pointers, 2, &contract));
	buf_deinit(&changed);
	return contract;
}

Test(layout, tells_how_much_of_a_structure_holds_what_is_read_of_it)
{
	AUTO_CONTRACT struct contract *contract =
		parse_with("\"NumVirtuals\":0", "\"NumVirtuals\":40");
	struct layout_tiers tiers;
	struct layout layout;

	cr_assert_null(layout_load(contract, &layout));
	cr_assert_null(layout_load_tiers(contract, &tiers));
	cr_assert_geq(layout.method_table.read_bytes, 42);
	cr_assert_geq(layout.code_header.read_bytes, 24);
	cr_assert_geq(layout.method_desc.read_bytes, 8);
	cr_assert_geq(layout.chunk.read_bytes, 22);
	cr_assert_geq(tiers.node_bytes, 40);
}

/* The contract of the made-up runtime as another processor has it. */
static struct contract *parse_for(const char *architecture, const char *function_fields)
{
	static const char processor[] = "\"Architecture\":[\"x64\"";
	static const char fields[] = "\"BeginAddress\":0,\"EndAddress\":4";
	static const uint64_t pointers[2];
	const char *text = clr_image_contract();
	const char *first = strstr(text, fields), *second = strstr(text, processor);
	struct contract *contract = NULL;
	struct buf changed;

	cr_assert(first && second && first < second);
	buf_init(&changed, 1 << 20);
	buf_printf(&changed, "%.*s\"BeginAddress\":0%s%.*s\"Architecture\":[\"%s\"%s",
		   (int)(first - text), text, function_fields,
		   (int)(second - first - (ptrdiff_t)strlen(fields)), first + strlen(fields),
		   architecture, second + strlen(processor));
	cr_assert_null(contract_parse(changed.data, changed.size_bytes, pointers, 2, &contract));
	buf_deinit(&changed);
	return contract;
}

Test(layout, knows_two_processors)
{
	static const struct {
		const char *architecture, *fields, *missing;
	} cases[] = {
		{ "x64", ",\"EndAddress\":4", NULL },
		{ "arm64", ",\"UnwindData\":4", NULL },
		{ "x64", ",\"UnwindData\":4", "EndAddress" },
		{ "arm64", ",\"EndAddress\":4", "UnwindData" },
		{ "riscv64", ",\"UnwindData\":4", "riscv64" },
		{ "arm", ",\"UnwindData\":4", "architecture arm " },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_CONTRACT struct contract *contract =
			parse_for(cases[i].architecture, cases[i].fields);
		struct layout layout;
		AUTO_ERROR struct sym_error *error = layout_load(contract, &layout);

		if (cases[i].missing) {
			cr_assert_eq(sym_error_code(error), SYM_ERROR_UNSUPPORTED);
			cr_expect_not_null(strstr(sym_error_message(error), cases[i].missing), "%s",
					   sym_error_message(error));
			continue;
		}
		cr_assert_null(error);
		cr_expect_eq(layout.runtime_function.last, 4);
		cr_expect_eq(layout.runtime_function.is_unwind_data, i == 1);
	}
}

Test(layout, refuses_structures_larger_than_any_can_be)
{
	static const struct {
		const char *from, *to, *word;
	} cases[] = {
		{ "\"NumUnwindInfos\":0", "\"NumUnwindInfos\":511", "RealCodeHeader" },
		{ "\"UnwindInfos\":16}", "\"UnwindInfos\":65535}", "RealCodeHeader" },
		{ "\"Slot\":6", "\"Slot\":512", "MethodDesc" },
		{ "\"FlagsAndTokenRange\":20", "\"FlagsAndTokenRange\":600", "MethodDescChunk" },
		{ "\"NumVirtuals\":0", "\"NumVirtuals\":65535", "MethodTable" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_CONTRACT struct contract *contract = parse_with(cases[i].from, cases[i].to);
		struct layout layout;
		AUTO_ERROR struct sym_error *error = layout_load(contract, &layout);

		cr_assert_not_null(error, "%s was accepted", cases[i].to);
		cr_assert_eq(sym_error_code(error), SYM_ERROR_UNSUPPORTED);
		cr_assert(strstr(sym_error_message(error), cases[i].word), "%s",
			  sym_error_message(error));
	}
}

Test(layout, knows_no_tiers_where_their_structures_are_too_large)
{
	static const char *const cases[][2] = {
		{ "\"OptimizationTier\":32", "\"OptimizationTier\":505" },
		{ "\"CodeData\":8", "\"CodeData\":65535" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_CONTRACT struct contract *contract = parse_with(cases[i][0], cases[i][1]);
		struct layout_tiers tiers;
		struct layout layout;
		AUTO_ERROR struct sym_error *error = layout_load_tiers(contract, &tiers);

		cr_assert_null(layout_load(contract, &layout), "names do not depend on it");
		cr_assert_not_null(error, "%s was accepted", cases[i][1]);
		cr_assert_eq(sym_error_code(error), SYM_ERROR_UNSUPPORTED);
	}
}
