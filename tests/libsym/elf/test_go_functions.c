/* SPDX-License-Identifier: MIT */
#include "libsym/elf/go_functions.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/image/image.h"
#include "libsym/libsym.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/go_table.h"

static const struct go_table_function functions[] = {
	{ "runtime.first", 0, 0x40, "/go/runtime/proc.go", 11 },
	{ "main.(*T).Method", 0x60, 0x80, "/src/main.go", 40 },
	{ "main.main", 0x100, 0x40, "/src/main.go", 90 },
};

enum {
	METHOD = GO_TABLE_TEXT + 0x60,
	MAIN = GO_TABLE_TEXT + 0x100,
	END = GO_TABLE_TEXT + 0x140
};

/* The base of all program variants. */
static struct go_table_program sample(enum go_table_version version)
{
	return (struct go_table_program){
		.table = {
			.version = version,
			.pointer_bytes = 8,
			.text_start = GO_TABLE_TEXT,
			.stated_text_start = GO_TABLE_TEXT,
			.functions = functions,
			.count = 3,
			.end_distance = 0x140,
		},
		.described = true,
	};
}

static struct sym_image *open_program(const struct go_table_program *program)
{
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct sym_image *image = NULL;

	cr_assert_null(object_file_open(NULL, go_table_file(program), "program", 0,
					SPARSE_FILE_TO_END, &object));
	cr_assert_null(image_create("program", object, &image));
	return image;
}

static const struct sym_answer *ask(struct sym_image *image, uint64_t vaddr,
				    struct sym_result *result)
{
	cr_assert_null(sym_image_resolve(image, SYM_POSITION_VADDR, &vaddr, 1, result));
	return sym_result_at(result, 0);
}

static struct sym_result *new_result(uint32_t want)
{
	struct sym_result *result = NULL;

	cr_assert_null(sym_result_create(&result));
	cr_assert_null(sym_result_set_fields(result, want));
	return result;
}

static void expect_name(struct sym_image *image, uint64_t vaddr, const char *name, uint64_t offset)
{
	struct sym_result *result = new_result(0);
	const struct sym_answer *answer = ask(image, vaddr, result);

	cr_assert_eq(answer->status, SYM_RESOLVED, "0x%lx: %s", (long)vaddr,
		     sym_status_text(answer->status));
	cr_expect_str_eq(answer->name, name);
	cr_expect_str_eq(sym_source_text(answer->source), "gopclntab");
	cr_expect_eq(answer->offset_bytes, offset);
	sym_result_destroy(result);
}

static void expect_status(struct sym_image *image, uint64_t vaddr, enum sym_status status)
{
	struct sym_result *result = new_result(0);

	cr_expect_eq(ask(image, vaddr, result)->status, status, "0x%lx", (long)vaddr);
	sym_result_destroy(result);
}

static void expect_all_names(const struct go_table_program *program)
{
	struct sym_image *image = open_program(program);

	expect_name(image, GO_TABLE_TEXT, "runtime.first", 0);
	expect_name(image, METHOD + 0x7f, "main.(*T).Method", 0x7f);
	expect_name(image, MAIN + 1, "main.main", 1);
	/* Between functions, before the first and after the last. */
	expect_status(image, METHOD - 1, SYM_NO_MATCH);
	expect_status(image, GO_TABLE_TEXT - 1, SYM_NO_MATCH);
	expect_status(image, END, SYM_NO_MATCH);
	image_destroy(image);
}

Test(go_functions, are_named_in_every_version)
{
	for (int version = 0; version < GO_TABLE_VERSIONS; version++) {
		struct go_table_program program = sample((enum go_table_version)version);

		expect_all_names(&program);
	}
}

/* A position-independent program has its text start in a relocation. */
Test(go_functions, are_named_if_the_text_start_is_relocated)
{
	struct go_table_program program = sample(GO_TABLE_1_18);

	program.relocated = true;
	expect_all_names(&program);
}

/* GNU ld joins the section of the table with others. */
Test(go_functions, are_found_inside_another_section)
{
	struct go_table_program program = sample(GO_TABLE_1_20);

	program.relocated = program.joined = true;
	expect_all_names(&program);
}

/* Since Go 1.26 the table does not contain the text start. */
Test(go_functions, are_named_if_only_moduledata_has_the_text_start)
{
	struct go_table_program program = sample(GO_TABLE_1_20);

	program.table.stated_text_start = 0;
	program.in_section = true;
	expect_all_names(&program);
	program.relocated = true;
	expect_all_names(&program);
	program.in_section = false;
	expect_all_names(&program);
}

static const struct sym_answer *ask_all(struct sym_image *image, uint64_t vaddr,
					struct sym_result **ret)
{
	*ret = new_result(SYM_FIELD_LINES | SYM_FIELD_INLINED);
	return ask(image, vaddr, *ret);
}

static void expect_chain(const struct go_table_program *program)
{
	struct sym_image *image = open_program(program);
	struct sym_result *result;
	const struct sym_answer *answer = ask_all(image, METHOD + 0x40, &result);

	cr_expect_str_eq(answer->name, "main.(*T).Method");
	cr_assert_not_null(answer->file);
	cr_expect_str_eq(answer->file, "/src/main.go");
	cr_expect_eq(answer->line, 60);
	cr_expect_eq(answer->column, 0);
	cr_assert_eq(answer->inlined_count, 2);
	cr_expect_str_eq(answer->inlined[0].name, go_table_inner);
	cr_expect_str_eq(answer->inlined[0].call_file, "/src/main.go");
	cr_expect_eq(answer->inlined[0].call_line, 50);
	cr_expect_str_eq(answer->inlined[1].name, go_table_outer);
	cr_expect_eq(answer->inlined[1].call_line, 40);
	sym_result_destroy(result);
	answer = ask_all(image, METHOD, &result);
	cr_expect_eq(answer->line, 40);
	cr_expect_eq(answer->inlined_count, 0);
	sym_result_destroy(result);
	image_destroy(image);
}

Test(go_functions, have_lines_and_inlined_functions)
{
	for (int version = GO_TABLE_1_18; version < GO_TABLE_VERSIONS; version++) {
		struct go_table_program program = sample((enum go_table_version)version);

		expect_chain(&program);
		program.relocated = program.joined = true;
		expect_chain(&program);
	}
}

Test(go_functions, have_only_lines_without_moduledata)
{
	struct go_table_program program = sample(GO_TABLE_1_20);
	struct sym_image *image;
	struct sym_result *result;
	const struct sym_answer *answer;

	program.described = false;
	image = open_program(&program);
	answer = ask_all(image, METHOD + 0x40, &result);
	cr_expect_eq(answer->line, 60);
	cr_expect_eq(answer->inlined_count, 0);
	sym_result_destroy(result);
	image_destroy(image);
}

Test(go_functions, are_listed_and_found_by_name)
{
	struct go_table_program program = sample(GO_TABLE_1_20);
	struct sym_image *image = open_program(&program);
	struct sym_symbols *symbols;
	size_t found;

	cr_assert_null(sym_image_symbols(image, 0, &symbols));
	cr_assert_eq(sym_symbols_count(symbols), 3);
	for (size_t i = 0; i < 3; i++) {
		const struct sym_symbol *symbol = sym_symbols_at(symbols, i);

		cr_expect_eq(symbol->start, GO_TABLE_TEXT + functions[i].distance);
		cr_expect_eq(symbol->size_bytes, functions[i].size_bytes);
		cr_expect_eq(symbol->source, SYM_SOURCE_GOPCLNTAB);
		cr_expect_str_eq(symbol->name, functions[i].name);
	}
	found = sym_symbols_find(symbols, "main.main", SYM_NONE);
	cr_assert_neq(found, SYM_NONE);
	cr_expect_eq(sym_symbols_at(symbols, found)->start, MAIN);
	sym_symbols_destroy(symbols);
	image_destroy(image);
}

/* ---- beside symbols --------------------------------------------------------------------- */

Test(go_functions, come_after_a_symbol_that_covers_the_address)
{
	struct go_table_program program = sample(GO_TABLE_1_20);
	struct sym_result *result = new_result(0);
	struct sym_image *image;
	const struct sym_answer *answer;

	program.export_vaddr = METHOD;
	program.export_bytes = 0x10;
	image = open_program(&program);
	answer = ask(image, METHOD + 0xf, result);
	cr_expect_str_eq(answer->name, "exported");
	cr_expect_eq(answer->source, SYM_SOURCE_ELF);
	expect_name(image, METHOD + 0x10, "main.(*T).Method", 0x10);
	sym_result_destroy(result);
	image_destroy(image);
}

/* An exported C function before Go's code, and a label inside Go's code. */
Test(go_functions, are_not_hidden_by_a_symbol_without_size)
{
	const uint64_t places[] = { GO_TABLE_TEXT - 0x20, METHOD, METHOD + 8 };

	for (size_t i = 0; i < 3; i++) {
		struct go_table_program program = sample(GO_TABLE_1_20);
		struct sym_symbols *symbols;
		struct sym_image *image;

		program.export_vaddr = places[i];
		image = open_program(&program);
		expect_name(image, GO_TABLE_TEXT, "runtime.first", 0);
		expect_name(image, METHOD + 8, "main.(*T).Method", 8);
		expect_name(image, MAIN + 8, "main.main", 8);
		expect_status(image, METHOD - 1, SYM_NO_MATCH);
		cr_assert_null(sym_image_symbols(image, 0, &symbols));
		cr_expect_eq(sym_symbols_count(symbols), i ? 3 : 4);
		for (size_t j = 1; j < sym_symbols_count(symbols); j++) {
			const struct sym_symbol *before = sym_symbols_at(symbols, j - 1);

			cr_expect_leq(before->start + before->size_bytes,
				      sym_symbols_at(symbols, j)->start);
		}
		sym_symbols_destroy(symbols);
		image_destroy(image);
	}
}

Test(go_functions, do_not_rename_exports_of_other_code)
{
	struct go_table_program program = sample(GO_TABLE_1_20);
	struct sym_result *result = new_result(0);
	struct sym_image *image;

	program.export_vaddr = GO_TABLE_TEXT - 0x20;
	image = open_program(&program);
	cr_expect_str_eq(ask(image, GO_TABLE_TEXT - 1, result)->name, "exported");
	sym_result_destroy(result);
	image_destroy(image);
}

/* ---- malformed -------------------------------------------------------------------------- */

static void expect_none(const struct go_table_program *program)
{
	struct sym_image *image = open_program(program);

	expect_status(image, METHOD, SYM_NO_SYMBOLS);
	image_destroy(image);
}

Test(go_functions, are_none_if_the_text_start_is_unknown)
{
	struct go_table_program program = sample(GO_TABLE_1_20);

	program.table.stated_text_start = 0;
	program.described = false;
	expect_none(&program);
}

Test(go_functions, are_none_if_the_table_covers_other_than_code)
{
	struct go_table_program program = sample(GO_TABLE_1_20);

	program.table.stated_text_start = 0x10000000;
	expect_none(&program);
	program = sample(GO_TABLE_1_2);
	program.table.text_start = 0x10000000;
	expect_none(&program);
	program = sample(GO_TABLE_1_20);
	program.table.end_distance = 0x10000000;
	expect_none(&program);
	program = sample(GO_TABLE_1_20);
	program.table.pointer_bytes = 4;
	expect_none(&program);
}

/* A moduledata that seems to belong to another program. */
Test(go_functions, ignore_moduledata_that_contradicts_the_table)
{
	struct go_table_program program = sample(GO_TABLE_1_20);

	program.table.stated_text_start = 0;
	program.table.text_start = 0x10000000;
	expect_none(&program);
}

static bool resolve_once(void *context)
{
	struct sym_image *image AUTO_IMAGE = NULL;
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct sym_result *result = NULL;
	uint64_t vaddr = METHOD + 0x40;
	struct sym_error *error;
	bool whole = false;
	int fd = dup(*(const int *)context);

	error = object_file_open(NULL, fd, "program", 0, SPARSE_FILE_TO_END, &object);
	if (error)
		close(fd);
	if (!error)
		error = image_create("program", object, &image);
	if (!error)
		error = sym_result_create(&result);
	if (!error)
		error = sym_result_set_fields(result, SYM_FIELD_LINES | SYM_FIELD_INLINED);
	if (!error)
		error = sym_image_resolve(image, SYM_POSITION_VADDR, &vaddr, 1, result);
	if (!error) {
		const struct sym_answer *answer = sym_result_at(result, 0);

		if (answer->name)
			cr_expect_str_eq(answer->name, "main.(*T).Method");
		whole = answer->name && answer->inlined_count == 2;
	}
	sym_error_destroy(error);
	sym_result_destroy(result);
	return whole;
}

Test(go_functions, survive_out_of_memory)
{
	struct go_table_program program = sample(GO_TABLE_1_20);
	int fd;

	program.relocated = program.joined = true;
	fd = go_table_file(&program);
	cr_expect_gt(alloc_fail_each(resolve_once, &fd), 5);
	close(fd);
}
