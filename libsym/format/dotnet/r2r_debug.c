/* SPDX-License-Identifier: MIT */
#include "libsym/format/dotnet/r2r_debug.h"

#include "libsym/format/dotnet/il.h"
#include "libsym/format/dotnet/native_format.h"
#include "libsym/format/dotnet/r2r_internal.h"

static const uint16_t first_packed_version = 16, first_fat_version = 17;

static enum debug_info_form form_of(const struct r2r *r2r)
{
	if (r2r->major_version < first_packed_version)
		return DEBUG_INFO_R2R_NIBBLE;
	return r2r->major_version < first_fat_version ? DEBUG_INFO_R2R_PACKED : DEBUG_INFO_R2R_FAT;
}

bool r2r_debug_find(const struct r2r *r2r, uint32_t entry, struct debug_info *ret)
{
	struct pe_directory section = r2r_section(&r2r->header, R2R_SECTION_DEBUG_INFO);
	const uint8_t *bytes =
		section.rva ? pe_bytes(r2r->pe, section.rva, section.size_bytes) : NULL;
	struct reader reader, element;
	size_t position;
	uint32_t back;

	*ret = (struct debug_info){ 0 };
	if (!bytes || entry >= r2r->entry_count)
		return false;
	reader = reader_over(bytes, section.size_bytes);
	if (!native_format_array_find(&reader, 0, r2r->entries[entry].function, &element))
		return false;
	position = element.position;
	back = native_format_unsigned(&element);
	if (back > position)
		reader_fail(&element, "debug information before its section");
	if (back)
		reader_seek(&element, position - back);
	if (reader_ok(&element))
		*ret = debug_info_read(element.data + element.position, reader_left(&element),
				       form_of(r2r));
	else
		ret->failure = element.failure;
	return !ret->failure;
}

bool r2r_debug_method(const struct r2r *r2r, uint32_t entry, struct r2r_definition_of_entry *ret,
		      const char **why_ret)
{
	bool is_stub;

	ret->metadata = r2r_entry_definition(r2r, entry, &ret->rid, &is_stub, why_ret);
	if (!ret->metadata)
		return false;
	ret->is_own = ret->metadata == r2r->metadata;
	if (is_stub)
		*why_ret = "a stub that resumes a method";
	return !is_stub;
}

uint32_t pe_il_bytes(const struct pe *pe, const struct metadata *metadata, uint32_t rid)
{
	uint32_t rva = metadata_method_rva(metadata, rid), code_bytes;
	size_t available_bytes;
	const uint8_t *body = rva ? pe_bytes_to_end(pe, rva, &available_bytes) : NULL;

	if (!body || !available_bytes)
		return 0;
	if (il_is_tiny(body[0]))
		return body[0] >> 2;
	return available_bytes >= IL_HEADER_BYTES && il_code_bytes(body, &code_bytes) ? code_bytes
										      : 0;
}
