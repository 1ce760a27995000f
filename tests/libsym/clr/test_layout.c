/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/clr/layout.h"
#include "libsym/process/remote_memory.h"
#include "tests/support/clr_image.h"

/* The contract of the fake runtime with `from`, which occurs once, replaced by `to`. */
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

Test(layout, computes_how_much_of_a_structure_is_read)
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

/* The contract of the fake runtime for another processor. */
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

/*
 * The contract of the fake runtime with some texts replaced. `missing`, if not NULL, gets another
 * name.
 */
static struct contract *parse_changed(const char *const (*changes)[2], size_t count,
				      const char *missing)
{
	static const uint64_t pointers[2];
	struct contract *contract = NULL;
	struct buf text, changed;

	buf_init(&text, 1 << 20);
	buf_append_string(&text, clr_image_contract());
	for (size_t i = 0; i < count; i++) {
		const char *found = strstr(buf_string(&text), changes[i][0]);

		cr_assert_not_null(found, "%s", changes[i][0]);
		buf_init(&changed, 1 << 20);
		buf_append(&changed, text.data, (size_t)(found - text.data));
		buf_append_string(&changed, changes[i][1]);
		buf_append_string(&changed, found + strlen(changes[i][0]));
		buf_deinit(&text);
		text = changed;
	}
	if (missing)
		memset(strstr(text.data, missing), 'X', 3);
	cr_assert_null(contract_parse(text.data, text.size_bytes, pointers, 2, &contract));
	buf_deinit(&text);
	return contract;
}

/* Changes in .NET 11: versions, dimensions of arrays, async methods. */
static struct contract *parse_later(const char *missing)
{
	static const char *const changes[][2] = {
		{ "\"version\":0", "\"version\":2" },
		{ "\"ArrayClass\":{\"Rank\":16},",
		  "\"AsyncMethodData\":{\"!\":24,\"Flags\":0,\"Signature\":8},"
		  "\"Signature\":{\"!\":16,\"SignaturePointer\":4,\"SignatureLength\":0},"
		  "\"NonVtableSlot\":{\"!\":8},\"MethodImpl\":{\"!\":16},"
		  "\"NativeCodeSlot\":{\"!\":32},\"InstantiatedMethodDesc\":{\"!\":40},"
		  "\"FCallMethodDesc\":{\"!\":24},\"PInvokeMethodDesc\":{\"!\":56},"
		  "\"EEImplMethodDesc\":{\"!\":32},\"ArrayMethodDesc\":{\"!\":33}," },
		{ "\"DynamicMethodDesc\":{", "\"DynamicMethodDesc\":{\"!\":48," },
		{ "\"MTFlags2\":8,", "\"MTFlags2\":8,\"BaseSize\":12," },
		{ "\"StubCodeBlockLast\"", "\"ArrayBaseSize\":\"0x18\",\"StubCodeBlockLast\"" },
		{ "\"ExecutionManager\":2", "\"ExecutionManager\":\"c1\"" },
		{ "\"RuntimeTypeSystem\":1", "\"RuntimeTypeSystem\":\"c1\"" },
		{ "\"Loader\":1", "\"Loader\":\"c1\"" },
		{ "\"EcmaMetadata\":1", "\"EcmaMetadata\":\"c1\"" },
		{ "\"CodeVersions\":1", "\"CodeVersions\":\"c1\"" },
		{ "\"PrecodeStubs\":3", "\"PrecodeStubs\":\"c1\"" },
		{ "\"PlatformMetadata\":1}", "\"PlatformMetadata\":\"c1\"}" },
	};

	return parse_changed(changes, sizeof(changes) / sizeof(changes[0]), missing);
}

Test(layout, reads_the_changes_of_later_releases)
{
	AUTO_CONTRACT struct contract *contract = parse_later(NULL);
	struct layout_precodes precodes;
	struct layout_tiers tiers;
	struct layout layout;

	cr_assert_null(layout_load(contract, &layout));
	cr_assert_null(layout_load_tiers(contract, &tiers));
	cr_assert_null(layout_load_precodes(contract, &precodes));
	cr_assert_not(layout.array.has_rank);
	cr_assert_eq(layout.array.base_size, 12);
	cr_assert_eq(layout.array.least_bytes, 24);
	cr_assert(layout.awaiting.is_known);
	cr_assert_not(layout.awaiting.is_by_row);
	cr_assert_eq(layout.awaiting.signature, 8);
	cr_assert_eq(layout.awaiting.pointer, 4);
	cr_assert_eq(layout.awaiting.length, 0);
	cr_assert_eq(layout.awaiting.desc_bytes[0], 24);
	cr_assert_eq(layout.awaiting.desc_bytes[4], 33);
	cr_assert_eq(layout.awaiting.desc_bytes[6], 0);
	cr_assert_eq(layout.awaiting.desc_bytes[7], 48);
	cr_assert_eq(layout.awaiting.slot_bytes[2], 32);
}

/* The structures around AsyncMethodData as .NET 10 publishes them. */
static struct contract *parse_first(const char *instantiated, const char *missing)
{
	const char *const changes[][2] = {
		{ "\"ArrayClass\":{\"Rank\":16},",
		  "\"ArrayClass\":{\"Rank\":16},\"NonVtableSlot\":{\"!\":8},"
		  "\"MethodImpl\":{\"!\":16},\"NativeCodeSlot\":{\"!\":8},"
		  "\"FCallMethodDesc\":{\"!\":24},\"PInvokeMethodDesc\":{\"!\":56},"
		  "\"EEImplMethodDesc\":{\"!\":32},\"ArrayMethodDesc\":{\"!\":32}," },
		{ "\"ArrayClass\"", instantiated },
		{ "\"DynamicMethodDesc\":{", "\"DynamicMethodDesc\":{\"!\":48," },
		{ "\"MethodDesc\":{\"!\":24", "\"MethodDesc\":{\"!\":16" },
	};

	return parse_changed(changes, sizeof(changes) / sizeof(changes[0]), missing);
}

static const char instantiated_of_10[] = "\"InstantiatedMethodDesc\":{\"!\":40},\"ArrayClass\"";

Test(layout, knows_async_data_when_all_else_equals_net_10)
{
	AUTO_CONTRACT struct contract *contract = parse_first(instantiated_of_10, NULL);
	struct layout layout;

	cr_assert_null(layout_load(contract, &layout));
	cr_assert(layout.awaiting.is_known);
	cr_assert(layout.awaiting.is_by_row);
	cr_expect_eq(layout.awaiting.desc_bytes[5], 40);
	cr_expect_eq(layout.awaiting.slot_bytes[1], 16);
	cr_expect_eq(layout.awaiting.signature + layout.awaiting.pointer, 8);
	cr_expect_eq(layout.awaiting.signature + layout.awaiting.length, 16);
}

Test(layout, does_not_guess_async_data_when_something_differs)
{
	static const struct {
		const char *instantiated, *missing;
	} cases[] = {
		{ "\"InstantiatedMethodDesc\":{\"!\":48},\"ArrayClass\"", NULL },
		{ instantiated_of_10, "NonVtableSlot" },
		{ instantiated_of_10, "EEImplMethodDesc" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO_CONTRACT struct contract *contract =
			parse_first(cases[i].instantiated, cases[i].missing);
		struct layout layout;

		cr_assert_null(layout_load(contract, &layout));
		cr_expect_not(layout.awaiting.is_known);
	}
}

Test(layout, names_what_later_releases_lack)
{
	static const char *const missing[] = { "ArrayBaseSize", "BaseSize", "SignatureLength",
					       "NativeCodeSlot", "FCallMethodDesc" };

	for (size_t i = 0; i < sizeof(missing) / sizeof(missing[0]); i++) {
		AUTO_CONTRACT struct contract *contract = parse_later(missing[i]);
		struct layout layout;
		AUTO_ERROR struct sym_error *error = layout_load(contract, &layout);

		cr_assert_eq(sym_error_code(error), SYM_ERROR_UNSUPPORTED);
		cr_expect_not_null(strstr(sym_error_message(error), missing[i]), "%s",
				   sym_error_message(error));
	}
}

Test(layout, rejects_structures_that_are_too_large)
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

Test(layout, has_no_tiers_when_their_structures_are_too_large)
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
