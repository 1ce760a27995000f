/* SPDX-License-Identifier: MIT */
#include "libsym/format/elf/gopclntab.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "libsym/limits.h"
#include "tests/support/byte_writer.h"
#include "tests/support/go_table.h"
#include "tests/support/go_table_read.h"

enum {
	TEXT = 0x401000
};

static const struct go_table_function functions[] = {
	{ "runtime.text", 0x20, 0x30, "/go/runtime/asm.s", 7 },
	{ "main.(*T).Method", 0x60, 0x1000, "/src/main.go", 4000 },
	{ "main.generic[...]", 0x1060, 0x40, "/src/more.go", 1 },
};

static struct go_table sample(enum go_table_version version, unsigned int pointer_bytes)
{
	return (struct go_table){
		.version = version,
		.pointer_bytes = pointer_bytes,
		.text_start = TEXT,
		.stated_text_start = TEXT,
		.functions = functions,
		.count = 3,
		.end_distance = 0x10a0,
	};
}

static struct buf written(const struct go_table *table, struct go_table_layout *layout)
{
	struct buf bytes;

	buf_init(&bytes, 1 << 24);
	go_table_write(table, &bytes, layout);
	cr_assert_eq(bytes.failure, BUF_OK);
	return bytes;
}

static struct gopclntab_bytes over(const struct buf *bytes)
{
	return (struct gopclntab_bytes){ .data = (const uint8_t *)bytes->data,
					 .size_bytes = bytes->size_bytes };
}

static struct gopclntab opened(const struct buf *bytes)
{
	struct gopclntab table;

	cr_assert(gopclntab_open(over(bytes), &table));
	return table;
}

/* Calls `check` with a table of every version and width. */
static void each_form(void (*check)(const struct go_table *, const struct gopclntab *))
{
	for (int version = 0; version < GO_TABLE_VERSIONS; version++)
		for (unsigned int width = 4; width <= 8; width += 4) {
			struct go_table form = sample((enum go_table_version)version, width);
			struct buf bytes = written(&form, NULL);
			struct gopclntab table = opened(&bytes);

			check(&form, &table);
			buf_deinit(&bytes);
		}
}

static struct gopclntab_function at(const struct gopclntab *table, uint64_t vaddr)
{
	struct gopclntab_function function = { 0 };
	uint64_t number = gopclntab_find(table, vaddr);

	cr_assert_neq(number, GOPCLNTAB_NONE, "0x%lx", (long)vaddr);
	cr_assert(read_function(table, number, &function), "0x%lx", (long)vaddr);
	return function;
}

static void check_names(const struct go_table *form, const struct gopclntab *table)
{
	cr_expect_eq(table->function_count, form->count);
	cr_expect_eq(table->pointer_bytes, form->pointer_bytes);
	for (size_t i = 0; i < form->count; i++) {
		const struct go_table_function *expected = &functions[i];
		struct gopclntab_function found = at(table, TEXT + expected->distance + 5);

		cr_expect_str_eq(found.name, expected->name);
		cr_expect_eq(found.vaddr, TEXT + expected->distance);
		cr_expect_eq(found.size_bytes, expected->size_bytes);
	}
}

Test(gopclntab, names_functions_in_every_version)
{
	each_form(check_names);
}

static void check_lines(const struct go_table *form, const struct gopclntab *table)
{
	for (size_t i = 0; i < form->count; i++) {
		const struct go_table_function *expected = &functions[i];
		struct gopclntab_function found = at(table, TEXT + expected->distance);
		uint32_t quarter = expected->size_bytes / 4;
		const uint32_t lines[] = { expected->line, expected->line + 10, expected->line + 20,
					   expected->line + 20 };

		for (uint32_t j = 0; j < 4; j++)
			for (uint32_t edge = 0; edge < 2; edge++) {
				uint64_t vaddr =
					found.vaddr + (uint64_t)quarter * (j + edge) - edge;
				struct gopclntab_line line = gopclntab_line(table, &found, vaddr);

				cr_assert_not_null(line.file);
				cr_expect_str_eq(line.file, expected->file);
				cr_expect_eq(line.line, lines[j]);
			}
	}
}

Test(gopclntab, has_lines_in_every_version)
{
	each_form(check_lines);
}

static void check_inlined(const struct go_table *form, const struct gopclntab *table)
{
	struct gopclntab_function function = at(table, TEXT + functions[1].distance);
	size_t row_bytes = gopclntab_inline_row_bytes(table);
	struct gopclntab_inlined inner, outer;
	struct reader all, row;
	struct buf bytes;
	uint32_t rows;

	if (form->version < GO_TABLE_1_18) {
		cr_expect_not(gopclntab_inline_rows(table, &function, &rows));
		return;
	}
	cr_assert(gopclntab_inline_rows(table, &function, &rows));
	buf_init(&bytes, 1 << 12);
	go_table_write_inlined(form, &bytes);
	all = reader_over(bytes.data, bytes.size_bytes);
	cr_expect_eq(gopclntab_inline_row(table, &function, function.vaddr), -1);
	cr_expect_eq(gopclntab_inline_row(table, &function, function.vaddr + 0x400), 0);
	cr_expect_eq(gopclntab_inline_row(table, &function, function.vaddr + 0xfff), 1);
	row = reader_part(&all, rows + row_bytes, row_bytes);
	cr_assert(gopclntab_inlined(table, &function, row, &inner));
	cr_expect_str_eq(inner.name, go_table_inner);
	cr_expect_str_eq(inner.call.file, "/src/main.go");
	cr_expect_eq(inner.call.line, 4010);
	cr_expect_eq(inner.parent, 0);
	row = reader_part(&all, rows, row_bytes);
	cr_assert(gopclntab_inlined(table, &function, row, &outer));
	cr_expect_str_eq(outer.name, go_table_outer);
	cr_expect_eq(outer.call.line, 4000);
	cr_expect_eq(outer.parent, -1);
	/* A call after the last byte of the function is malformed. */
	patch_u32(&bytes, rows + (form->version < GO_TABLE_1_20 ? 16 : 8), functions[1].size_bytes);
	row = reader_part(&all, rows, row_bytes);
	cr_expect_not(gopclntab_inlined(table, &function, row, &outer));
	patch_u32(&bytes, rows + (form->version < GO_TABLE_1_20 ? 16 : 8),
		  functions[1].size_bytes - 1);
	row = reader_part(&all, rows, row_bytes);
	cr_expect(gopclntab_inlined(table, &function, row, &outer));
	buf_deinit(&bytes);
}

Test(gopclntab, has_inlined_functions_since_1_18)
{
	each_form(check_inlined);
}

/* ---- boundaries ------------------------------------------------------------------------- */

static void check_edges(const struct go_table *form, const struct gopclntab *table)
{
	struct gopclntab_function function;

	(void)form;
	cr_expect_eq(gopclntab_find(table, 0), GOPCLNTAB_NONE);
	cr_expect_eq(gopclntab_find(table, TEXT + 0x1f), GOPCLNTAB_NONE);
	cr_expect_eq(gopclntab_find(table, TEXT + 0x20), 0);
	cr_expect_eq(gopclntab_find(table, TEXT + 0x109f), 2);
	cr_expect_eq(gopclntab_find(table, TEXT + 0x10a0), GOPCLNTAB_NONE);
	cr_expect_eq(gopclntab_find(table, UINT64_MAX), GOPCLNTAB_NONE);
	cr_expect_not(read_function(table, 3, &function));
	cr_expect_not(read_function(table, UINT64_MAX, &function));
	/* Padding up to the next function belongs to the row, but not to the function. */
	function = at(table, TEXT + 0x5f);
	cr_expect_str_eq(function.name, "runtime.text");
	cr_expect_eq(function.size_bytes, 0x30);
}

Test(gopclntab, ends_where_functions_end)
{
	each_form(check_edges);
}

struct demand {
	size_t bytes, calls;
};

static bool count_need(void *context, size_t offset, size_t size_bytes)
{
	struct demand *demand = context;

	(void)offset;
	demand->bytes += size_bytes;
	demand->calls++;
	return true;
}

Test(gopclntab, requests_little_of_a_large_table)
{
	enum {
		MANY = 8000
	};
	static struct go_table_function many[MANY];
	struct go_table form = sample(GO_TABLE_1_20, 8);
	struct gopclntab_function function;
	struct demand demand = { 0 };
	struct gopclntab_bytes bytes;
	struct gopclntab table;
	struct buf whole;

	for (size_t i = 0; i < MANY; i++)
		many[i] = (struct go_table_function){ "many.functions", (uint32_t)i * 32, 32, "f",
						      1 };
	form.functions = many;
	form.count = MANY;
	form.end_distance = MANY * 32;
	whole = written(&form, NULL);
	bytes = over(&whole);
	bytes.need = count_need;
	bytes.context = &demand;
	cr_assert(gopclntab_open(bytes, &table));
	function = at(&table, TEXT + 32 * 4321 + 1);
	cr_expect_eq(function.vaddr, TEXT + 32 * 4321);
	cr_expect_lt(demand.bytes, 2048, "%zu of %zu bytes", demand.bytes, whole.size_bytes);
	buf_deinit(&whole);
}

static bool refuse(void *context, size_t offset, size_t size_bytes)
{
	(void)offset;
	(void)size_bytes;
	return (*(size_t *)context)--;
}

/* Each of the required ranges in turn cannot be read. */
Test(gopclntab, has_no_answer_if_bytes_cannot_be_read)
{
	struct go_table form = sample(GO_TABLE_1_20, 8);
	struct buf whole = written(&form, NULL);
	struct gopclntab table = opened(&whole);
	size_t left, refused = 0;

	table.bytes.need = refuse;
	table.bytes.context = &left;
	for (size_t i = 0; i < 16; i++) {
		struct gopclntab_function function;

		left = i;
		if (!read_function(&table, 0, &function))
			refused++;
		else
			cr_expect_leq(function.size_bytes, 0x30);
	}
	/* The row, the next one, the record, its words and the name. */
	cr_expect_geq(refused, 4);
	buf_deinit(&whole);
}

/* ---- malformed -------------------------------------------------------------------------- */

static void expect_refused(const struct buf *bytes, size_t position, uint32_t value)
{
	struct gopclntab table;
	struct buf damaged;

	buf_init(&damaged, 1 << 20);
	buf_append(&damaged, bytes->data, bytes->size_bytes);
	patch_u32(&damaged, position, value);
	cr_expect_not(gopclntab_open(over(&damaged), &table), "%u at %zu", value, position);
	buf_deinit(&damaged);
}

Test(gopclntab, rejects_malformed_headers)
{
	struct go_table form = sample(GO_TABLE_1_20, 8);
	struct buf bytes = written(&form, NULL);

	expect_refused(&bytes, 0, 0xfffffff2); /* an unknown version */
	expect_refused(&bytes, 0, 0xf1ffffff); /* the other byte order */
	expect_refused(&bytes, 4, 0x08010001); /* bytes that must be 0 */
	expect_refused(&bytes, 4, 0x08030000); /* instructions of 3 bytes */
	expect_refused(&bytes, 4, 0x02010000); /* pointers of 2 bytes */
	expect_refused(&bytes, 8, 0);          /* no functions */
	expect_refused(&bytes, 8, 0x10000);    /* more than fit */
	/* the same number plus 2^63, which overflows */
	expect_refused(&bytes, 12, 0x80000000);
	for (size_t part = 32; part < 72; part += 8) { /* parts beyond the end */
		expect_refused(&bytes, part, (uint32_t)bytes.size_bytes + 1);
		expect_refused(&bytes, part + 4, UINT32_MAX);
	}
	buf_deinit(&bytes);
}

/* A function of the sample after a word of its record was changed. */
static bool read_damaged(size_t word, uint32_t value, struct gopclntab_function *ret,
			 struct gopclntab_line *line_ret)
{
	struct go_table form = sample(GO_TABLE_1_20, 8);
	struct go_table_layout layout;
	struct buf bytes = written(&form, &layout);
	struct gopclntab table = opened(&bytes);
	bool found;

	patch_u32(&bytes, layout.first_record + 4 * word, value);
	found = read_function(&table, 0, ret);
	*line_ret = found ? gopclntab_line(&table, ret, ret->vaddr) : (struct gopclntab_line){ 0 };
	if (line_ret->file)
		line_ret->file = "some";
	if (found)
		cr_expect_leq(ret->size_bytes, 0x40);
	buf_deinit(&bytes);
	return found;
}

Test(gopclntab, rejects_a_record_that_contradicts_its_row)
{
	struct gopclntab_function function;
	struct gopclntab_line line;

	cr_expect_not(read_damaged(0, 0x60, &function, &line));
	cr_expect_not(read_damaged(1, UINT32_MAX, &function, &line)); /* a name beyond the end */
	cr_expect_not(read_damaged(1, 0, &function, &line));          /* an empty name */
}

Test(gopclntab, has_no_line_without_a_value)
{
	struct gopclntab_function function;
	struct gopclntab_line line;

	cr_expect(read_damaged(5, 0, &function, &line)); /* no file table */
	cr_expect_null(line.file);
	cr_expect(read_damaged(5, UINT32_MAX, &function, &line));
	cr_expect_null(line.file);
	cr_expect(read_damaged(8, UINT32_MAX, &function, &line)); /* no such unit */
	cr_expect_null(line.file);
	/* Without a line table, the stack table determines the size. */
	cr_expect(read_damaged(6, 0, &function, &line));
	cr_expect_eq(function.size_bytes, 0x30);
	cr_expect_eq(line.line, 0);
}

Test(gopclntab, stops_a_table_at_the_end_of_its_function)
{
	struct go_table form = sample(GO_TABLE_1_20, 8);
	struct go_table_layout layout;
	struct gopclntab_function function;
	struct buf bytes = written(&form, &layout);
	struct gopclntab table = opened(&bytes);
	size_t tables = layout.parts[3];

	/* Endless steps of 0 bytes. */
	memset(bytes.data + tables, 2, layout.rows - tables);
	for (size_t i = tables + 1; i < layout.rows; i += 2)
		bytes.data[i] = 0;
	cr_assert(read_function(&table, 1, &function));
	cr_expect_leq(function.size_bytes, 0x1000);
	/* Endless numbers. */
	memset(bytes.data + tables, 0xff, layout.rows - tables);
	cr_assert(read_function(&table, 1, &function));
	cr_expect_eq(function.size_bytes, 0);
	buf_deinit(&bytes);
}

Test(gopclntab, rejects_unterminated_names)
{
	struct go_table form = sample(GO_TABLE_1_2, 8);
	struct go_table_layout layout;
	struct gopclntab_function function;
	struct buf bytes = written(&form, &layout);
	struct gopclntab table;

	patch_u32(&bytes, layout.first_record + 8, (uint32_t)bytes.size_bytes - 4);
	memset(bytes.data + bytes.size_bytes - 4, 'x', 4);
	table = opened(&bytes);
	cr_expect_not(read_function(&table, 0, &function));
	/* Longer than any compiler writes. */
	patch_u32(&bytes, layout.first_record + 8, (uint32_t)bytes.size_bytes);
	for (size_t i = 0; i < LIMIT_NAME_BYTES + 1000; i++)
		put_u8(&bytes, 'x');
	put_u8(&bytes, 0);
	table.bytes = over(&bytes);
	cr_expect_not(read_function(&table, 0, &function));
	buf_deinit(&bytes);
}

/* Every query. The sanitizers and bounds check the answers. */
static void ask_everything(const struct gopclntab *table)
{
	for (uint64_t i = 0; i < table->function_count && i < 8; i++) {
		struct gopclntab_function function;
		struct gopclntab_line line;
		uint32_t rows;

		if (!read_function(table, i, &function))
			continue;
		cr_assert_gt(strlen(function.name), 0);
		line = gopclntab_line(table, &function, function.vaddr + function.size_bytes / 2);
		cr_assert(!line.file || strlen(line.file) <= LIMIT_NAME_BYTES);
		gopclntab_inline_row(table, &function, function.vaddr);
		gopclntab_inline_rows(table, &function, &rows);
	}
	gopclntab_find(table, TEXT + 0x70);
}

Test(gopclntab, survives_every_truncation)
{
	for (int version = 0; version < GO_TABLE_VERSIONS; version++) {
		struct go_table form = sample((enum go_table_version)version, 8);
		struct buf whole = written(&form, NULL);

		for (size_t size_bytes = 0; size_bytes < whole.size_bytes; size_bytes++) {
			uint8_t *cut = malloc(size_bytes ? size_bytes : 1);
			struct gopclntab table;

			cr_assert_not_null(cut);
			memcpy(cut, whole.data, size_bytes);
			if (gopclntab_open((struct gopclntab_bytes){ cut, size_bytes, NULL, NULL },
					   &table))
				ask_everything(&table);
			free(cut);
		}
		buf_deinit(&whole);
	}
}

Test(gopclntab, survives_every_changed_byte)
{
	for (int version = 0; version < GO_TABLE_VERSIONS; version++) {
		struct go_table form = sample((enum go_table_version)version, 4);
		struct buf whole = written(&form, NULL);

		for (size_t i = 0; i < whole.size_bytes; i++) {
			static const uint8_t others[] = { 0, 1, 0x7f, 0x80, 0xff };
			char byte = whole.data[i];

			for (size_t j = 0; j < sizeof(others); j++) {
				struct gopclntab table;

				whole.data[i] = (char)others[j];
				if (gopclntab_open(over(&whole), &table))
					ask_everything(&table);
			}
			whole.data[i] = byte;
		}
		buf_deinit(&whole);
	}
}
