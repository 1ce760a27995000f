/* SPDX-License-Identifier: MIT */
/*
 * Stubs that resume runtime-async methods (.NET 11): code that no table of entry points lists. A
 * fixup of the resumed method refers to its stub, which need not be adjacent to it.
 *
 *   section 101: rows { rva and size of cells, u16 flags, u8 type, u8 bytes of a cell,
 *   rva of signatures (u32 rvas, one a cell), rva of auxiliary data }
 *   signature of a stub: u8 0x38, u32 rva of the stub
 *   fixups of a method: nibbles, the lower of a byte first; a number is 3 bits each, the highest
 *   first, bit 3 set in all but the last; row, cell, steps to further cells up to 0, then the step
 *   to a further row with its cells, up to 0
 */
#include "libsym/format/dotnet/r2r_internal.h"

#include <stdlib.h>

#include "libsym/format/dotnet/il_map.h"
#include "libsym/format/dotnet/r2r_functions.h"

enum {
	IMPORT_ROW_BYTES = 20,
	FIXUP_RESUMPTION_STUB = 0x38,
	SIGNATURE_BYTES = 5
};

static const uint16_t first_major_version_of_stubs = 17;

/* The cells of one row of section 101, and their signatures. */
struct imports {
	uint32_t cell_count;
	uint32_t signatures; /* rva */
};

static struct imports read_row(const struct r2r *r2r, uint32_t row)
{
	struct reader reader =
		reader_over(r2r->imports + (size_t)row * IMPORT_ROW_BYTES, IMPORT_ROW_BYTES);
	struct imports imports;
	uint32_t size_bytes;
	uint8_t cell_bytes;

	reader_skip(&reader, 4);
	size_bytes = reader_u32(&reader);
	reader_skip(&reader, 3);
	cell_bytes = reader_u8(&reader);
	imports.signatures = reader_u32(&reader);
	imports.cell_count = cell_bytes && imports.signatures ? size_bytes / cell_bytes : 0;
	return imports;
}

/*
 * Runtime function number of the stub that a cell refers to; `function_count` if it refers to none.
 */
static uint32_t stub_of_cell(const struct r2r *r2r, const uint8_t *signature_rva)
{
	struct reader reader = reader_over(signature_rva, 4);
	const uint8_t *signature = pe_bytes(r2r->pe, reader_u32(&reader), SIGNATURE_BYTES);

	if (!signature || signature[0] != FIXUP_RESUMPTION_STUB)
		return r2r->function_count;
	reader = reader_over(signature + 1, 4);
	return r2r_function_at(r2r, reader_u32(&reader));
}

static bool add_stubs_of_row(struct r2r *r2r, const struct imports *imports)
{
	struct pe_directory table = { imports->signatures, imports->cell_count * 4 };
	const uint8_t *rvas = imports->cell_count <= UINT32_MAX / 4 ? r2r_table(r2r, table) : NULL;

	for (uint32_t i = 0; rvas && i < imports->cell_count; i++) {
		uint32_t function = stub_of_cell(r2r, rvas + (size_t)i * 4);

		if (function < r2r->function_count &&
		    !r2r_add_entry(r2r, function, R2R_NO_ENTRY, 0))
			return false;
	}
	return true;
}

static int compare_functions(const void *left_item, const void *right_item)
{
	const struct r2r_entry *left = left_item, *right = right_item;

	return left->function < right->function ? -1 : left->function > right->function;
}

/* Sorts stubs by function and drops duplicates, which several cells refer to. */
static void sort_stubs(struct r2r *r2r)
{
	struct r2r_entry *stubs = r2r->entries + r2r->stub_entry;
	size_t count = r2r->entry_count - r2r->stub_entry, kept = 1;

	qsort(stubs, count, sizeof(*stubs), compare_functions);
	for (size_t i = 1; i < count; i++)
		if (stubs[i].function != stubs[kept - 1].function)
			stubs[kept++] = stubs[i];
	r2r->entry_count = r2r->stub_entry + kept;
}

/* ---- which method a stub resumes ----------------------------------------------------- */

struct fixups {
	struct nibble_reader nibbles;
	size_t *left; /* how many numbers may still be read in this image */
};

static uint32_t read_number(struct fixups *fixups)
{
	if (!*fixups->left)
		reader_fail(&fixups->nibbles.bytes, "fixups overlap");
	else
		--*fixups->left;
	return nibble_read(&fixups->nibbles);
}

static struct r2r_entry *find_stub(struct r2r *r2r, uint32_t function)
{
	struct r2r_entry key = { .function = function };

	return bsearch(&key, r2r->entries + r2r->stub_entry, r2r->entry_count - r2r->stub_entry,
		       sizeof(key), compare_functions);
}

static void assign_stub(struct r2r *r2r, uint32_t row, uint32_t cell, uint32_t owner)
{
	struct imports imports = read_row(r2r, row);
	struct r2r_entry *stub;
	const uint8_t *rva;

	if (cell >= imports.cell_count || cell > UINT32_MAX / 4)
		return;
	rva = pe_bytes(r2r->pe, imports.signatures + cell * 4, 4);
	stub = rva ? find_stub(r2r, stub_of_cell(r2r, rva)) : NULL;
	if (stub)
		stub->locator = owner;
}

static void assign_stubs_of_fixups(struct r2r *r2r, struct fixups *fixups, uint32_t owner)
{
	uint32_t row = read_number(fixups), step = 1;

	for (; step && row < r2r->import_count && reader_ok(&fixups->nibbles.bytes); row += step) {
		uint32_t cell = read_number(fixups);

		do {
			assign_stub(r2r, row, cell, owner);
			step = read_number(fixups);
			cell += step;
		} while (step && reader_ok(&fixups->nibbles.bytes));
		step = read_number(fixups);
	}
}

static void assign_stubs(struct r2r *r2r)
{
	size_t left = 2 * r2r->pe->size_bytes;

	for (size_t i = r2r->method_def_count; i < r2r->stub_entry; i++) {
		struct signature_budget budget = signature_budget_full();
		struct reader reader = r2r->instances, flags;
		struct fixups fixups = { .left = &left };
		struct r2r_entry_point point;

		reader_seek(&reader, r2r->entries[i].locator);
		flags = reader;
		if (!(signature_unsigned(&flags) & R2R_INSTANCE_ASYNC_VARIANT))
			continue;
		r2r_read_instance(&reader, &budget);
		point = r2r_read_entry_point(&reader);
		if (!point.has_fixups)
			continue;
		fixups.nibbles.bytes = r2r->instances;
		reader_seek(&fixups.nibbles.bytes, point.fixups);
		assign_stubs_of_fixups(r2r, &fixups, (uint32_t)i);
	}
}

struct sym_error *r2r_read_resumption_stubs(struct r2r *r2r)
{
	struct pe_directory section = r2r_section(&r2r->header, R2R_SECTION_IMPORT_SECTIONS);

	r2r->stub_entry = r2r->entry_count;
	if (r2r->major_version < first_major_version_of_stubs || !section.rva ||
	    !section.size_bytes)
		return NULL;
	r2r->imports = r2r_table(r2r, section);
	if (!r2r->imports)
		return sym_error_create(SYM_ERROR_FORMAT, "import sections lie outside the image");
	r2r->import_count = section.size_bytes / IMPORT_ROW_BYTES;
	for (uint32_t row = 0; row < r2r->import_count; row++) {
		struct imports imports = read_row(r2r, row);

		if (!add_stubs_of_row(r2r, &imports))
			return r2r_table_error(r2r, "resumption stubs");
	}
	if (r2r->entry_count == r2r->stub_entry)
		return NULL;
	sort_stubs(r2r);
	assign_stubs(r2r);
	return NULL;
}
