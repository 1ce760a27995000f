/* SPDX-License-Identifier: MIT */
/*
 * Every source without memory: each allocation of opening an image, listing its symbols and
 * looking up positions fails in turn. Then an answer is that of a run with memory, or it says that
 * something is missing.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/error.h"
#include "libsym/libsym.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/elf_builder.h"
#include "tests/support/program.h"

enum {
	MOST_POSITIONS = 24,
	NEIGHBOURS = 3 /* of a position: itself, one behind, one far behind */
};

static const uint64_t distances[NEIGHBOURS] = { 0, 1, 0x4000 };

/* An image, a debug file for it, and what a run with memory has found. */
struct reading {
	const char *path, *debug_path;
	enum sym_position_kind kind;
	struct sym_symbols *symbols;
	uint64_t positions[MOST_POSITIONS];
	size_t position_count;
	struct sym_image *image;
	struct sym_result *result; /* belongs to `image` */
};

static int fetch_path(void *context, const struct sym_fetch_request *request, char **path_ret)
{
	const struct reading *reading = context;

	(void)request;
	/* asprintf() does not fail here, as strdup() would. */
	return reading->debug_path && asprintf(path_ret, "%s", reading->debug_path) < 0 ? ENOMEM
											: 0;
}

/* Returns false and frees it when it is an error; it must be about memory. */
static bool holds(struct sym_error *error)
{
	if (!error)
		return true;
	cr_expect_eq(sym_error_code(error), SYM_ERROR_NO_MEMORY, "%s", sym_error_message(error));
	sym_error_destroy(error);
	return false;
}

static bool open_reading(const struct reading *reading, struct sym_image **ret)
{
	*ret = NULL;
	return holds(sym_image_open(reading->path, ret)) &&
	       holds(sym_image_set_fetch(*ret, fetch_path, (void *)(uintptr_t)reading));
}

static void begin(struct reading *reading)
{
	size_t count;

	cr_assert(open_reading(reading, &reading->image), "%s", reading->path);
	reading->kind = sym_image_kind(reading->image) == SYM_IMAGE_ELF ? SYM_POSITION_VADDR
									: SYM_POSITION_RVA;
	cr_assert_null(sym_image_symbols(reading->image,
					 SYM_IMAGE_SYMBOLS_STUBS | SYM_IMAGE_SYMBOLS_UNNAMED,
					 &reading->symbols));
	count = sym_symbols_count(reading->symbols);
	for (size_t i = 0; i < count && reading->position_count + NEIGHBOURS <= MOST_POSITIONS;
	     i += 1 + count * NEIGHBOURS / MOST_POSITIONS)
		for (size_t j = 0; j < NEIGHBOURS; j++)
			reading->positions[reading->position_count++] =
				sym_symbols_at(reading->symbols, i)->start + distances[j];
	for (uint64_t vaddr = 0x1000; !count && reading->position_count < MOST_POSITIONS;
	     vaddr += 8)
		reading->positions[reading->position_count++] = vaddr;
	cr_assert_null(sym_result_create(&reading->result));
	cr_assert_null(sym_result_set_fields(reading->result, SYM_FIELD_LINES | SYM_FIELD_INLINED));
	cr_assert_null(sym_image_resolve(reading->image, reading->kind, reading->positions,
					 reading->position_count, reading->result));
}

static void end(struct reading *reading)
{
	sym_result_destroy(reading->result);
	sym_symbols_destroy(reading->symbols);
	sym_image_close(reading->image);
}

static bool same_text(const char *left, const char *right)
{
	return left && right ? !strcmp(left, right) : left == right;
}

/* The name in the symbol table takes the place of a readable one that there is no memory for. */
static bool same_name(const char *name, const char *expected, const char *linkage_name)
{
	return same_text(name, expected) || (name && linkage_name && !strcmp(name, linkage_name));
}

static bool list_is_whole(const struct reading *reading, struct sym_image *image)
{
	struct sym_symbols *list = NULL;
	bool is_whole = holds(sym_image_symbols(
		image, SYM_IMAGE_SYMBOLS_STUBS | SYM_IMAGE_SYMBOLS_UNNAMED, &list));

	if (!is_whole)
		return false;
	cr_assert_eq(sym_symbols_count(list), sym_symbols_count(reading->symbols), "%s",
		     reading->path);
	for (size_t i = 0; i < sym_symbols_count(list); i++) {
		const struct sym_symbol *symbol = sym_symbols_at(list, i),
					*expected = sym_symbols_at(reading->symbols, i);

		cr_assert_eq(symbol->start, expected->start);
		cr_assert(same_text(symbol->name, expected->name) ||
				  !strncmp(symbol->name, "_Z", 2),
			  "%s for %s", symbol->name, expected->name);
	}
	sym_symbols_destroy(list);
	return true;
}

/* Returns true when the answer is that of the run with memory. */
static bool answer_is_whole(const struct sym_answer *answer, const struct sym_answer *expected)
{
	if (answer->status == SYM_UNREADABLE)
		return false;
	cr_expect_eq(answer->status, expected->status, "%#lx: %s", (long)expected->address,
		     answer->reason);
	cr_expect(same_name(answer->name, expected->name, expected->linkage_name), "%s for %s",
		  answer->name, expected->name);
	cr_expect_eq(answer->offset_bytes, expected->offset_bytes);
	if (answer->lost)
		return false;
	cr_expect_eq(answer->line, expected->line, "%s", answer->name);
	cr_expect(same_text(answer->file, expected->file), "%s for %s", answer->file,
		  expected->file);
	cr_expect_eq(answer->inlined_count, expected->inlined_count);
	return true;
}

static bool answers_are_whole(const struct reading *reading, struct sym_image *image)
{
	struct sym_result *result = NULL;
	bool is_whole = holds(sym_result_create(&result)) &&
			holds(sym_result_set_fields(result, SYM_FIELD_LINES | SYM_FIELD_INLINED)) &&
			holds(sym_image_resolve(image, reading->kind, reading->positions,
						reading->position_count, result));

	for (size_t i = 0; is_whole && i < reading->position_count; i++)
		if (!answer_is_whole(sym_result_at(result, i), sym_result_at(reading->result, i)))
			is_whole = false;
	sym_result_destroy(result);
	return is_whole;
}

static bool look_up_first(void *context)
{
	const struct reading *reading = context;
	struct sym_image *image;
	bool is_whole = open_reading(reading, &image) && answers_are_whole(reading, image) &&
			list_is_whole(reading, image);

	sym_image_close(image);
	return is_whole;
}

static bool list_first(void *context)
{
	const struct reading *reading = context;
	struct sym_image *image;
	bool is_whole = open_reading(reading, &image) && list_is_whole(reading, image) &&
			answers_are_whole(reading, image);

	sym_image_close(image);
	return is_whole;
}

static void try_each(const char *path, const char *debug_path)
{
	struct reading reading = { .path = path, .debug_path = debug_path };

	begin(&reading);
	cr_expect_gt(alloc_fail_each(look_up_first, &reading), 10, "%s", path);
	cr_expect_gt(alloc_fail_each(list_first, &reading), 10, "%s", path);
	end(&reading);
}

Test(sources_memory, of_an_assembly)
{
	try_each("fixtures/recorded/opt/sample/sample.dll", NULL);
}

Test(sources_memory, of_go)
{
	try_each("fixtures/corpus/elf_names/go", NULL);
}

Test(sources_memory, of_packed_symbols)
{
	try_each("fixtures/corpus/elf_names/link-and-packed", NULL);
}

Test(sources_memory, of_dwarf)
{
	try_each("fixtures/corpus/dwarf/dwarf-5", NULL);
	try_each("fixtures/corpus/dwarf/packed", NULL);
}

/* Stripped: exports, bounds of functions, linkage stubs. */
Test(sources_memory, of_a_stripped_program)
{
	try_each("/bin/true", NULL);
}

Test(sources_memory, of_a_fetched_debug_file)
{
	static const struct elf_builder_symbol symbols[] = {
		{ .name = "exported", .vaddr = 0x401000, .size_bytes = 0x20, 1, 2 },
		{ .name = "hidden", .vaddr = 0x401020, .size_bytes = 0x20, 0, 2 },
	};
	char *scratch = scratch_create(), *path = scratch_path(scratch, "lib.so"),
	     *debug_path = scratch_path(scratch, "lib.debug");
	struct elf_builder_options options = { .dynamic_only = true, .build_id = 0x11 };
	size_t size_bytes;
	uint8_t *bytes = elf_builder_make(symbols, 1, options, &size_bytes);

	scratch_write(path, bytes, size_bytes);
	free(bytes);
	options.dynamic_only = false;
	bytes = elf_builder_make(symbols, 2, options, &size_bytes);
	scratch_write(debug_path, bytes, size_bytes);
	free(bytes);
	try_each(path, debug_path);
	scratch_remove(scratch);
	free(debug_path);
	free(path);
}
