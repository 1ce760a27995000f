/* SPDX-License-Identifier: MIT */
/* Shared by all tables of a ReadyToRun image: the core header that locates them, the bound on their
 * total size, and the entries that they add. */
#include "libsym/base/grow.h"
#include "libsym/format/dotnet/native_format.h"
#include "libsym/format/dotnet/r2r_internal.h"

static const uint32_t max_sections = 256; /* about 25 exist */

bool r2r_read_core_header(struct reader *reader, struct r2r_core_header *ret)
{
	uint32_t count;

	*ret = (struct r2r_core_header){ .flags = reader_u32(reader) };
	count = reader_u32(reader);
	if (count > max_sections)
		return false;
	for (uint32_t i = 0; i < count && reader_ok(reader); i++) {
		uint32_t type = reader_u32(reader);
		struct pe_directory section;

		section.rva = reader_u32(reader);
		section.size_bytes = reader_u32(reader);
		if (reader_ok(reader) && type >= R2R_SECTION_FIRST && type < R2R_SECTION_END)
			ret->sections[type - R2R_SECTION_FIRST] = section;
	}
	return reader_ok(reader);
}

const uint8_t *r2r_table(struct r2r *r2r, struct pe_directory directory)
{
	const uint8_t *bytes = pe_bytes(r2r->pe, directory.rva, directory.size_bytes);

	if (!bytes || directory.size_bytes > r2r->pe->size_bytes - r2r->table_bytes)
		return NULL;
	r2r->table_bytes += directory.size_bytes;
	return bytes;
}

bool r2r_add_entry(struct r2r *r2r, uint32_t function, uint32_t locator, uint32_t module)
{
	/* An entry takes at least one byte of the image. More entries mean that bytes are read
	 * twice. */
	if (r2r->entry_count >= r2r->pe->size_bytes || r2r->entry_count >= UINT32_MAX)
		return false;
	if (!grow_items((void **)&r2r->entries, &r2r->entry_capacity, r2r->entry_count,
			sizeof(*r2r->entries))) {
		r2r->has_no_memory = true;
		return false;
	}
	r2r->entries[r2r->entry_count++] = (struct r2r_entry){ function, locator, module };
	return true;
}

struct sym_error *r2r_table_error(const struct r2r *r2r, const char *table)
{
	if (r2r->has_no_memory)
		return &sym_error_no_memory;
	return sym_error_create(SYM_ERROR_FORMAT, "malformed table of %s", table);
}

struct r2r_entry_point r2r_read_entry_point(struct reader *reader)
{
	uint32_t id = native_format_unsigned(reader);
	struct r2r_entry_point point = {
		.function = id & 1 ? id >> 2 : id >> 1,
		.has_fixups = id & 1,
		.fixups = reader->position,
	};

	/* The fixups lie before the entry point, not after it. */
	if ((id & 3) == 3)
		point.fixups -= native_format_unsigned(reader);
	return point;
}

struct method_def_walk {
	struct r2r *r2r;
	uint32_t module;
};

static bool visit_method_def(void *context, uint32_t index, struct reader element)
{
	struct method_def_walk *walk = context;
	uint32_t function = r2r_read_entry_point(&element).function;

	if (!reader_ok(&element) || function >= walk->r2r->function_count) {
		walk->r2r->undecodable_count++;
		return true;
	}
	return r2r_add_entry(walk->r2r, function, index + 1, walk->module);
}

struct sym_error *r2r_read_method_defs(struct r2r *r2r, const struct r2r_core_header *header,
				       uint32_t module, uint32_t max_rid)
{
	struct pe_directory section = r2r_section(header, R2R_SECTION_METHOD_DEF_ENTRY_POINTS);
	struct method_def_walk walk = { r2r, module };
	const uint8_t *bytes;
	struct reader reader;

	if (!section.rva || !section.size_bytes)
		return NULL;
	bytes = r2r_table(r2r, section);
	if (!bytes)
		return sym_error_create(
			SYM_ERROR_FORMAT,
			"not a usable ReadyToRun image: method entry points lie outside the image");
	reader = reader_over(bytes, section.size_bytes);
	if (!native_format_array(&reader, 0, max_rid, visit_method_def, &walk))
		return r2r_table_error(r2r, "method entry points");
	return NULL;
}
