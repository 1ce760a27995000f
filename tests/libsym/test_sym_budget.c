/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/budget_api.h"
#include "libsym/index/index.h"
#include "libsym/symbols/symbols.h"
#include "tests/support/elf_builder.h"

static struct sym_budget *make(const struct sym_budget_opts *opts)
{
	struct sym_budget *budget = NULL;

	cr_assert_null(sym_budget_create(opts, &budget));
	return budget;
}

Test(sym_budget, has_limits_by_default)
{
	struct sym_budget *budget = make(NULL);
	struct budget *inside = budget_inside(budget);

	cr_expect_eq(inside->others.most_bytes, (uint64_t)512 << 20);
	cr_expect_eq(inside->others.timers[BUDGET_CPU].most_ns, INT64_C(10000000000));
	cr_expect_eq(inside->others.timers[BUDGET_WAIT].most_ns, INT64_C(10000000000));
	cr_expect_lt(inside->own.most_bytes, UINT64_MAX);
	cr_expect_eq(inside->own.timers[BUDGET_CPU].most_ns, INT64_MAX);
	cr_expect_null(sym_budget_excess(budget));
	sym_budget_destroy(budget);
	sym_budget_destroy(NULL);
	sym_budget_begin_step(NULL);
	cr_expect_null(sym_budget_excess(NULL));
}

Test(sym_budget, takes_the_limits_of_its_caller)
{
	const struct sym_budget_opts opts = { .size = sizeof(opts),
					      .memory_bytes = SYM_BUDGET_UNLIMITED,
					      .cpu_ms = 7,
					      .wait_ms = SYM_BUDGET_UNLIMITED,
					      .own_memory_bytes = 9 };
	const struct sym_budget_opts wrong = { .size = 1 };
	struct sym_budget *budget = make(&opts);
	struct budget *inside = budget_inside(budget);
	struct sym_error *error;

	cr_expect_eq(inside->others.most_bytes, UINT64_MAX);
	cr_expect_eq(inside->others.timers[BUDGET_CPU].most_ns, 7000000);
	cr_expect_eq(inside->others.timers[BUDGET_WAIT].most_ns, INT64_MAX);
	cr_expect_eq(inside->own.most_bytes, 9);
	sym_budget_destroy(budget);
	error = sym_budget_create(&wrong, &budget);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
}

Test(sym_budget, says_what_was_refused_in_one_line)
{
	const struct sym_budget_opts opts = { .size = sizeof(opts), .memory_bytes = 3 << 20 };
	struct sym_budget *budget = make(&opts);
	const char *text;

	sym_error_destroy(budget_charge(&budget_inside(budget)->others, 4 << 20, "/tmp/bomb.so"));
	text = sym_budget_excess(budget);
	cr_assert_not_null(text);
	cr_expect(strstr(text, "3 MB of memory"), "%s", text);
	cr_expect(strstr(text, "/tmp/bomb.so"), "%s", text);
	cr_expect(strstr(text, "other users"), "%s", text);
	cr_expect_null(strchr(text, '\n'));
	sym_budget_begin_step(budget);
	cr_expect_null(sym_budget_excess(budget));
	sym_budget_destroy(budget);
}

/* Symbols of an index and of a list are charged, and given back with it. */
Test(sym_budget, bounds_an_index)
{
	struct sym_budget *budget = make(NULL);
	struct budget_account *account = &budget_inside(budget)->others;
	struct index_builder *builder = NULL;
	struct index *index = NULL;
	struct sym_error *error;
	char name[32];

	for (int round = 0; round < 2; round++) {
		cr_assert_null(index_builder_create(&builder));
		index_builder_charge(builder, account, "f");
		for (unsigned int i = 0; i < 10000; i++)
			index_builder_add(builder, i, 1, name,
					  (size_t)snprintf(name, sizeof(name), "f%u", i), 0);
		error = index_freeze(builder, &index);
		index_builder_destroy(builder);
		if (!round) {
			cr_assert_null(error);
			cr_expect_gt(account->held_bytes, 10000 * 16);
			index_destroy(index);
			account->most_bytes = 10000 * 16;
		}
		cr_expect_eq(account->held_bytes, 0);
	}
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	sym_error_destroy(error);
	sym_budget_destroy(budget);
}

Test(sym_budget, bounds_a_list_of_symbols)
{
	const struct sym_symbol symbol = { .size_bytes = 1 };
	struct sym_budget *budget = make(NULL);
	struct budget_account *account = &budget_inside(budget)->others;
	struct sym_symbols *list = NULL;
	struct sym_error *error;

	for (int round = 0; round < 2; round++) {
		struct symbols_builder builder;

		symbols_builder_init(&builder);
		symbols_builder_charge(&builder, account, "f");
		for (int i = 0; i < 10000; i++)
			symbols_builder_add(&builder, &symbol, "name", 4);
		symbols_builder_charge(&builder, NULL, NULL);
		error = symbols_freeze(&builder, &list);
		symbols_builder_deinit(&builder);
		if (!round) {
			cr_assert_null(error);
			cr_expect_gt(account->held_bytes, 10000 * sizeof(symbol));
			sym_symbols_destroy(list);
			account->most_bytes = 10000 * sizeof(symbol);
		}
		cr_expect_eq(account->held_bytes, 0);
	}
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	sym_error_destroy(error);
	sym_budget_destroy(budget);
}

Test(sym_budget, is_given_back_by_an_image)
{
	static const struct elf_builder_symbol symbols[] = {
		{ "first", ELF_BUILDER_TEXT_VADDR, 0x20, STB_LOCAL, STT_FUNC },
	};
	struct sym_budget *budget = make(NULL);
	const struct sym_image_opts opts = { .size = sizeof(opts), .budget = budget };
	const struct sym_image_opts wrong = { .size = 2 };
	const uint64_t vaddr = ELF_BUILDER_TEXT_VADDR;
	struct sym_image *image = NULL;
	struct sym_result *result = NULL;
	struct sym_error *error;
	size_t size_bytes;
	uint8_t *bytes =
		elf_builder_make(symbols, 1, (struct elf_builder_options){ 0 }, &size_bytes);
	int fd = elf_builder_file(bytes, size_bytes);
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* As a file of another user. */
	budget_inside(budget)->effective_uid = budget_inside(budget)->real_uid = 4000000000;
	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_image_open_with(path, &opts, &image));
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_VADDR, &vaddr, 1, result));
	cr_expect_eq(sym_result_at(result, 0)->status, SYM_RESOLVED);
	sym_result_destroy(result);
	sym_image_close(image);
	cr_expect_eq(budget_inside(budget)->own.held_bytes, 0);
	cr_expect_eq(budget_inside(budget)->others.held_bytes, 0);
	error = sym_image_open_with(path, &wrong, &image);
	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	sym_budget_destroy(budget);
	close(fd);
	free(bytes);
}

/* The maximum of the buffer is not what it met. */
Test(sym_budget, is_the_reason_where_a_buffer_may_not_grow)
{
	struct sym_budget *budget = make(NULL);
	struct sym_error *error;
	struct buf buf;

	budget_inside(budget)->others.most_bytes = 100;
	buf_init(&buf, 1 << 20);
	buf_charge(&buf, &budget_inside(budget)->others);
	cr_assert_null(buf_reserve(&buf, 200));
	error = sym_error_from_buf(&buf, "a stream");
	cr_expect_eq(sym_error_code(error), SYM_ERROR_LIMIT);
	cr_expect(strstr(sym_error_message(error), "budget"), "%s", sym_error_message(error));
	sym_error_destroy(error);
	buf_deinit(&buf);
	sym_budget_destroy(budget);
}
