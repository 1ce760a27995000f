/* SPDX-License-Identifier: MIT */
/*
 * Encodes the tables of section 101, 102, 103, 109, 112, 115, 116, 118 and 120 and
 * wraps them in a PE file. Positions inside the tables section are rvas minus
 * 0x1000.
 */
#include "tests/support/r2r_builder.h"

#include <string.h>

#include "tests/support/byte_writer.h"
#include "tests/support/pe_builder.h"

static const size_t most_bytes = 1 << 24;

struct section_list {
	size_t count;
	uint32_t rows[16][3]; /* type, rva, size */
};

static uint32_t here(const struct buf *tables)
{
	return R2R_BUILDER_TABLES_RVA + (uint32_t)tables->size_bytes;
}

static void note(struct section_list *list, uint32_t type, uint32_t rva, uint32_t size_bytes)
{
	list->rows[list->count][0] = type;
	list->rows[list->count][1] = rva;
	list->rows[list->count][2] = size_bytes;
	list->count++;
}

static void put_native_unsigned(struct buf *buf, uint32_t value)
{
	if (value < 1u << 7) {
		put_u8(buf, (uint8_t)(value << 1));
	} else if (value < 1u << 14) {
		put_u16(buf, (uint16_t)(value << 2 | 1));
	} else if (value < 1u << 28) {
		put_u32(buf, value << 4 | 7);
	} else {
		put_u8(buf, 0x0f);
		put_u32(buf, value);
	}
}

static void put_entry_point(struct buf *buf, uint32_t function, enum r2r_recipe_fixups fixups)
{
	if (fixups == FIXUPS_NONE) {
		put_native_unsigned(buf, function << 1);
		return;
	}
	put_native_unsigned(buf, function << 2 | (fixups == FIXUPS_ELSEWHERE ? 3 : 1));
	put_native_unsigned(buf, 1);
}

/* ---- section 103 ---------------------------------------------------------- */

static size_t count_between(const struct r2r_recipe_method *methods, size_t count, uint32_t first,
			    uint32_t end)
{
	size_t found = 0;

	for (size_t i = 0; i < count; i++)
		if (methods[i].rid - 1 >= first && methods[i].rid - 1 < end)
			found++;
	return found;
}

static const struct r2r_recipe_method *first_between(const struct r2r_recipe_method *methods,
						     size_t count, uint32_t first, uint32_t end)
{
	for (size_t i = 0; i < count; i++)
		if (methods[i].rid - 1 >= first && methods[i].rid - 1 < end)
			return &methods[i];
	return NULL;
}

/* The trie over `width` indexes from `first`; every node header takes four bytes. */
static void put_trie(struct buf *buf, const struct r2r_recipe_method *methods, size_t count,
		     uint32_t first, uint32_t width)
{
	size_t inside = count_between(methods, count, first, first + width);
	const struct r2r_recipe_method *only = first_between(methods, count, first, first + width);
	size_t node = buf->size_bytes, left, right;

	if (width > 1 && inside <= 1) {
		/* A lone leaf, or for an empty block a leaf with a contradictory index. */
		put_native_unsigned(buf, inside ? ((only->rid - 1) & 15) << 2 : 0x3f << 2);
		if (!inside)
			return;
	}
	if (inside <= 1) {
		put_entry_point(buf, only->function, only->fixups);
		return;
	}
	left = count_between(methods, count, first, first + width / 2);
	right = inside - left;
	put_u32(buf, 0);
	if (left)
		put_trie(buf, methods, count, first, width / 2);
	patch_u32(buf, node,
		  ((uint32_t)(right ? (buf->size_bytes - node) << 2 | 2 : 0) | (left ? 1 : 0))
				  << 4 |
			  7);
	if (right)
		put_trie(buf, methods, count, first + width / 2, width / 2);
}

static void put_method_array(struct buf *buf, const struct r2r_recipe_method *methods, size_t count)
{
	uint32_t last = 0, blocks;
	size_t base;

	for (size_t i = 0; i < count; i++)
		if (methods[i].rid > last)
			last = methods[i].rid;
	blocks = (last + 15) / 16;
	put_native_unsigned(buf, last << 2 | 2);
	base = buf->size_bytes;
	put_zeros(buf, (size_t)blocks * 4);
	for (uint32_t i = 0; i < blocks; i++) {
		patch_u32(buf, base + (size_t)i * 4, (uint32_t)(buf->size_bytes - base));
		put_trie(buf, methods, count, i * 16, 16);
	}
}

/* ---- section 109: one bucket ---------------------------------------------- */

static void put_instances(struct buf *buf, const struct r2r_recipe *recipe)
{
	size_t entries;

	put_u8(buf, 2);
	put_u32(buf, 8);
	put_u32(buf, (uint32_t)(8 + recipe->instance_count * 6));
	entries = buf->size_bytes;
	put_zeros(buf, recipe->instance_count * 6);
	for (size_t i = 0; i < recipe->instance_count; i++) {
		size_t entry = entries + i * 6;

		buf->data[entry] = (char)i;
		buf->data[entry + 1] = 0x0f;
		patch_u32(buf, entry + 2, (uint32_t)(buf->size_bytes - (entry + 1)));
		buf_append(buf, recipe->instances[i].signature,
			   recipe->instances[i].signature_bytes);
		if (!recipe->instances[i].fixups) {
			put_entry_point(buf, recipe->instances[i].function, FIXUPS_NONE);
			continue;
		}
		put_native_unsigned(buf, recipe->instances[i].function << 2 | 1);
		buf_append(buf, recipe->instances[i].fixups, recipe->instances[i].fixup_bytes);
	}
}

/* ---- section 101 ---------------------------------------------------------- */

/* Writes the signatures of a row, then their rvas; returns the rva of the latter. */
static uint32_t put_import_signatures(struct buf *tables, const struct r2r_recipe_imports *imports)
{
	uint32_t first = here(tables), rva;

	for (size_t i = 0; i < imports->count; i++) {
		put_u8(tables, imports->items[i].kind);
		put_u32(tables, imports->items[i].rva);
	}
	rva = here(tables);
	for (size_t i = 0; i < imports->count; i++)
		put_u32(tables, first + (uint32_t)i * 5);
	return rva;
}

static void put_imports(struct buf *tables, const struct r2r_recipe *recipe,
			struct section_list *list)
{
	uint32_t signatures[2], start;

	for (size_t i = 0; i < recipe->import_count; i++)
		signatures[i] = put_import_signatures(tables, &recipe->imports[i]);
	start = here(tables);
	for (size_t i = 0; i < recipe->import_count; i++) {
		put_u32(tables, R2R_BUILDER_CODE_RVA);
		put_u32(tables, (uint32_t)recipe->imports[i].count * 8);
		put_u16(tables, 4);
		put_u8(tables, 0);
		put_u8(tables, 8);
		put_u32(tables, signatures[i]);
		put_u32(tables, 0);
	}
	if (recipe->import_count)
		note(list, 101, start, here(tables) - start);
}

/* ---- section 102 ---------------------------------------------------------- */

static void put_functions(struct buf *buf, const struct r2r_recipe *recipe, bool is_x64)
{
	uint32_t unwind = here(buf);
	uint16_t machine = recipe->machine;

	/* Lengths first: the rows of other machines refer to them. */
	for (size_t i = 0; !is_x64 && i < recipe->function_count; i++) {
		uint32_t size_bytes = recipe->functions[i].size_bytes;

		if (machine == 0x014c)
			put_u32(buf, size_bytes);
		else
			put_u32(buf, size_bytes / (machine == 0x01c4 ? 2 : 4) | 0x08000000);
	}
	for (size_t i = 0; i < recipe->function_count; i++) {
		uint32_t begin = recipe->functions[i].begin_rva;

		put_u32(buf, machine == 0x01c4 ? begin | 1 : begin);
		if (is_x64)
			put_u32(buf, begin + recipe->functions[i].size_bytes);
		put_u32(buf, is_x64 ? unwind : unwind + (uint32_t)i * 4);
	}
	for (int i = 0; recipe->with_sentinel && i < (is_x64 ? 12 : 8); i++)
		put_u8(buf, 0xff);
}

static bool is_x64(const struct r2r_recipe *recipe)
{
	return recipe->machine == 0x8664 || recipe->machine == 0xfd1d;
}

static void put_runtime_functions(struct buf *tables, const struct r2r_recipe *recipe,
				  struct section_list *list)
{
	size_t row_bytes = is_x64(recipe) ? 12 : 8;
	size_t rows = recipe->function_count + (recipe->with_sentinel ? 1 : 0);

	put_functions(tables, recipe, is_x64(recipe));
	note(list, 102, here(tables) - (uint32_t)(rows * row_bytes), (uint32_t)(rows * row_bytes));
}

/* ---- headers -------------------------------------------------------------- */

static void put_core_header(struct buf *tables, uint32_t flags, const struct section_list *list)
{
	put_u32(tables, flags);
	put_u32(tables, (uint32_t)list->count);
	for (size_t i = 0; i < list->count; i++)
		for (size_t j = 0; j < 3; j++)
			put_u32(tables, list->rows[i][j]);
}

static uint32_t put_copy(struct buf *tables, const struct buf *bytes)
{
	uint32_t rva;

	put_padding(tables, 4);
	rva = here(tables);
	buf_append(tables, bytes->data, bytes->size_bytes);
	return rva;
}

static uint32_t put_cli_header(struct buf *tables, uint32_t metadata_rva, size_t metadata_bytes,
			       uint32_t native_rva)
{
	uint32_t rva = here(tables);

	put_u32(tables, 72);
	put_u32(tables, 0x00050002);
	put_u32(tables, metadata_rva);
	put_u32(tables, (uint32_t)metadata_bytes);
	put_u32(tables, 4);
	put_zeros(tables, 44);
	put_u32(tables, native_rva);
	put_u32(tables, native_rva ? 64 : 0);
	return rva;
}

static void put_components(struct buf *tables, const struct r2r_recipe *recipe,
			   struct section_list *list)
{
	uint32_t rows[4][4] = { 0 };

	for (size_t i = 0; i < recipe->component_count; i++) {
		const struct r2r_recipe_component *component = &recipe->components[i];
		struct section_list own = { 0 };
		size_t start = tables->size_bytes;

		put_method_array(tables, component->methods, component->method_count);
		note(&own, 103, R2R_BUILDER_TABLES_RVA + (uint32_t)start,
		     (uint32_t)(tables->size_bytes - start));
		if (component->embedded_metadata) {
			uint32_t rva = put_copy(tables, component->embedded_metadata);

			rows[i][0] = put_cli_header(tables, rva,
						    component->embedded_metadata->size_bytes, 0);
			rows[i][1] = 72;
		}
		rows[i][2] = here(tables);
		put_core_header(tables, 0, &own);
		rows[i][3] = here(tables) - rows[i][2];
	}
	note(list, 115, here(tables), (uint32_t)recipe->component_count * 16);
	for (size_t i = 0; i < recipe->component_count; i++)
		for (size_t j = 0; j < 4; j++)
			put_u32(tables, rows[i][j]);
}

static void put_tables(struct buf *tables, const struct r2r_recipe *recipe,
		       struct section_list *list)
{
	uint32_t start;

	put_imports(tables, recipe, list);
	put_runtime_functions(tables, recipe, list);
	start = here(tables);
	if (recipe->method_count) {
		put_method_array(tables, recipe->methods, recipe->method_count);
		note(list, 103, start, here(tables) - start);
	}
	if (recipe->thunks_bytes)
		note(list, 106, recipe->thunks_rva, recipe->thunks_bytes);
	start = here(tables);
	if (recipe->instance_count) {
		put_instances(tables, recipe);
		note(list, 109, start, here(tables) - start);
	}
	if (recipe->manifest)
		note(list, 112, put_copy(tables, recipe->manifest),
		     (uint32_t)recipe->manifest->size_bytes);
	if (recipe->component_count)
		put_components(tables, recipe, list);
	start = here(tables);
	if (recipe->owner_composite) {
		buf_append(tables, recipe->owner_composite, strlen(recipe->owner_composite) + 1);
		note(list, 116, start, here(tables) - start);
	}
	start = here(tables);
	if (recipe->manifest_mvid_count) {
		buf_append(tables, recipe->manifest_mvids, recipe->manifest_mvid_count * 16);
		note(list, 118, start, here(tables) - start);
	}
	start = here(tables);
	for (size_t i = 0; i < recipe->cold_count; i++) {
		put_u32(tables, recipe->cold_pairs[i][0]);
		put_u32(tables, recipe->cold_pairs[i][1]);
	}
	if (recipe->cold_count)
		note(list, 120, start, here(tables) - start);
}

static uint32_t put_export(struct buf *tables, uint32_t native_rva)
{
	uint32_t cells = here(tables), rva;

	put_u32(tables, native_rva); /* functions */
	put_u32(tables, cells + 10); /* names */
	put_u16(tables, 0);          /* ordinals */
	buf_append(tables, "RTR_HEADER", 11);
	rva = here(tables);
	put_zeros(tables, 20);
	put_u32(tables, 1);
	put_u32(tables, 1);
	put_u32(tables, cells);
	put_u32(tables, cells + 4);
	put_u32(tables, cells + 8);
	return rva;
}

void build_r2r(struct buf *out, const struct r2r_recipe *recipe)
{
	static const char code[R2R_BUILDER_CODE_BYTES];
	struct pe_recipe pe = { .machine = recipe->machine, .section_count = 2 };
	struct section_list list = { 0 };
	uint32_t metadata_rva = 0, native_rva;
	struct buf tables;

	buf_init(&tables, most_bytes);
	put_tables(&tables, recipe, &list);
	if (recipe->metadata)
		metadata_rva = put_copy(&tables, recipe->metadata);
	native_rva = here(&tables);
	put_u32(&tables, 0x00525452);
	put_u16(&tables, recipe->major_version);
	put_u16(&tables, recipe->minor_version);
	put_core_header(&tables, recipe->flags, &list);
	if (recipe->through_export)
		pe.export_rva = put_export(&tables, native_rva);
	else
		pe.cli_rva = put_cli_header(&tables, metadata_rva,
					    recipe->metadata ? recipe->metadata->size_bytes : 0,
					    native_rva);
	pe.sections[0] =
		(struct pe_recipe_section){ R2R_BUILDER_TABLES_RVA, 0x40000000, tables.data,
					    tables.size_bytes,      0,          0 };
	pe.sections[1] = (struct pe_recipe_section){ R2R_BUILDER_CODE_RVA, 0x60000000, code,
						     sizeof(code),         0,          0 };
	build_pe(out, &pe);
	buf_deinit(&tables);
}
