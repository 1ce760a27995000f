/* SPDX-License-Identifier: MIT */
/*
 * The header and the tables of a ReadyToRun image, and the extent of every method in it. Names are
 * in r2r_name.c, signatures in r2r_instance.c.
 *
 *   header: 'RTR\0', u16 major, u16 minor, then the core header:
 *   u32 flags, u32 n, n x { u32 section type, u32 rva, u32 size }
 *   102 runtime functions: begin rva [, end rva], unwind rva, sorted by begin
 *   103 method entry points by MethodDef rid; 109 those of instantiations
 *   101 import cells; some refer to stubs that resume methods (r2r_resumption.c)
 *   120 pairs of (first runtime function of a cold part, of its method)
 *
 * A method owns the runtime functions from its own up to the next method's: its body, followed by
 * its funclets (catch, finally, filter).
 */
#include "libsym/format/dotnet/r2r_internal.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/format/dotnet/r2r_functions.h"

static const uint32_t r2r_signature = 0x00525452;  /* "RTR\0" */
static const uint32_t ngen_signature = 0x0045474e; /* "NGE\0" */
static const uint32_t flag_component = 0x20;
static const uint16_t newest_major_version = 26;
static const uint16_t oldest_major_version = 2;

static struct sym_error *r2r_format_error(const char *what)
{
	return sym_error_create(SYM_ERROR_FORMAT, "not a usable ReadyToRun image: %s", what);
}

/* ---- headers -------------------------------------------------------------- */

/* Rva of the export with this name; 0 if there is none. */
static uint32_t find_exported_rva(const struct pe *pe, const char *wanted)
{
	const uint8_t *bytes = pe_bytes(pe, pe->export_table.rva, 40);
	uint32_t name_count, functions, names, ordinals;
	size_t wanted_bytes = strlen(wanted) + 1;
	struct reader reader;

	if (!pe->export_table.rva || !bytes)
		return 0;
	reader = reader_over(bytes, 40);
	reader_skip(&reader, 24);
	name_count = reader_u32(&reader);
	functions = reader_u32(&reader);
	names = reader_u32(&reader);
	ordinals = reader_u32(&reader);
	for (uint32_t i = 0; i < name_count; i++) {
		const uint8_t *row = pe_bytes(pe, names + i * 4, 4), *name;
		struct reader cell;

		if (!row)
			return 0;
		cell = reader_over(row, 4);
		name = pe_bytes(pe, reader_u32(&cell), wanted_bytes);
		if (!name || memcmp(name, wanted, wanted_bytes))
			continue;
		row = pe_bytes(pe, ordinals + i * 2, 2);
		if (!row)
			return 0;
		row = pe_bytes(pe, functions + (uint32_t)(row[0] | row[1] << 8) * 4, 4);
		if (!row)
			return 0;
		cell = reader_over(row, 4);
		return reader_u32(&cell);
	}
	return 0;
}

/* A reader at the native header; it has failed if there is none. */
static struct reader find_native_header(const struct pe *pe)
{
	uint32_t rva = pe->managed_native_header.rva;
	struct reader reader = reader_over(NULL, 0);
	size_t available_bytes;
	const uint8_t *bytes;

	if (!rva && !pe->cli.rva)
		rva = find_exported_rva(pe, "RTR_HEADER");
	bytes = rva ? pe_bytes_to_end(pe, rva, &available_bytes) : NULL;
	if (!bytes)
		reader_fail(&reader, "no native header");
	else
		reader = reader_over(bytes, available_bytes);
	return reader;
}

static enum r2r_flavour read_headers(const struct pe *pe, uint16_t *major_ret, uint16_t *minor_ret,
				     struct r2r_core_header *header)
{
	struct reader reader = find_native_header(pe);
	uint32_t signature = reader_u32(&reader);

	if (reader_ok(&reader) && signature == ngen_signature)
		return R2R_NGEN;
	*major_ret = reader_u16(&reader);
	*minor_ret = reader_u16(&reader);
	if (signature != r2r_signature || !r2r_read_core_header(&reader, header))
		return R2R_NONE;
	if (r2r_section(header, R2R_SECTION_COMPONENT_ASSEMBLIES).rva)
		return R2R_COMPOSITE;
	if (header->flags & flag_component && r2r_section(header, R2R_SECTION_OWNER_COMPOSITE).rva)
		return R2R_COMPONENT;
	return R2R_PLAIN;
}

struct pe_directory r2r_find_section(const struct pe *pe, enum r2r_section number)
{
	struct r2r_core_header header = { 0 };
	uint16_t major, minor;
	enum r2r_flavour flavour = read_headers(pe, &major, &minor, &header);

	if (flavour == R2R_NONE || flavour == R2R_NGEN)
		return (struct pe_directory){ 0 };
	return r2r_section(&header, number);
}

enum r2r_flavour r2r_flavour(const struct pe *pe)
{
	struct r2r_core_header header;
	uint16_t major, minor;

	return read_headers(pe, &major, &minor, &header);
}

const char *r2r_owner_composite(const struct pe *pe)
{
	struct r2r_core_header header;
	struct pe_directory section;
	uint16_t major, minor;
	const uint8_t *bytes;
	struct reader reader;
	const char *name;

	if (read_headers(pe, &major, &minor, &header) != R2R_COMPONENT)
		return NULL;
	section = r2r_section(&header, R2R_SECTION_OWNER_COMPOSITE);
	bytes = pe_bytes(pe, section.rva, section.size_bytes);
	if (!bytes)
		return NULL;
	reader = reader_over(bytes, section.size_bytes);
	name = reader_string(&reader);
	/* The file lies in the same directory, so a path is rejected. */
	return name && *name && !strchr(name, '/') && strcmp(name, "..") ? name : NULL;
}

/* ---- entries -------------------------------------------------------------- */

static struct sym_error *read_entries(struct r2r *r2r)
{
	struct sym_error *error;

	if (r2r->flavour == R2R_COMPOSITE)
		error = r2r_read_components(r2r);
	else
		error = r2r_read_method_defs(
			r2r, &r2r->header, 0,
			metadata_row_count(r2r->metadata, METADATA_METHOD_DEF));
	if (error)
		return error;
	r2r->method_def_count = r2r->entry_count;
	error = r2r_read_instances(r2r);
	return error ? error : r2r_read_resumption_stubs(r2r);
}

/* ---- opening -------------------------------------------------------------- */

static struct sym_error *check_version(const struct r2r *r2r)
{
	if (r2r->flavour == R2R_NONE)
		return sym_error_create(SYM_ERROR_UNSUPPORTED, "image has no precompiled code");
	if (r2r->flavour == R2R_NGEN)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"fragile native image (NGEN), not ReadyToRun");
	if (r2r->major_version < oldest_major_version || r2r->major_version > newest_major_version)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"ReadyToRun format %u.%u is not known (known: %u to %u)",
					r2r->major_version, r2r->minor_version,
					oldest_major_version, newest_major_version);
	return NULL;
}

/* Finds the metadata of all modules that were used, then what the MemberRefs mean. */
static struct sym_error *find_modules(struct r2r *r2r)
{
	r2r->has_member_refs &= r2r->manifest != NULL;
	if (r2r->has_member_refs)
		r2r_use_member_modules(r2r);
	r2r_find_modules(r2r);
	return r2r->has_member_refs ? r2r_resolve_members(r2r) : NULL;
}

static struct sym_error *read_image(struct r2r *r2r)
{
	struct sym_error *error = r2r_open_modules(r2r);

	if (error || r2r->flavour == R2R_COMPONENT)
		return error;
	if (r2r->flavour == R2R_PLAIN && !r2r->metadata)
		return r2r_format_error("no metadata");
	error = r2r_read_functions(r2r);
	if (!error)
		error = read_entries(r2r);
	if (!error)
		error = find_modules(r2r);
	if (!error)
		error = r2r_find_ranges(r2r);
	return error;
}

struct sym_error *r2r_open(const struct pe *pe, const struct metadata *metadata,
			   const struct r2r_assemblies *assemblies, struct r2r **ret)
{
	AUTO_R2R struct r2r *r2r = calloc(1, sizeof(*r2r));
	struct sym_error *error;

	if (!r2r)
		return &sym_error_no_memory;
	r2r->pe = pe;
	r2r->metadata = metadata;
	r2r->assemblies = assemblies;
	r2r->flavour = read_headers(pe, &r2r->major_version, &r2r->minor_version, &r2r->header);
	error = check_version(r2r);
	if (!error)
		error = read_image(r2r);
	if (error)
		return error;
	*ret = STEAL(r2r);
	return NULL;
}

void r2r_close(struct r2r *r2r)
{
	if (!r2r)
		return;
	r2r_close_members(r2r);
	r2r_close_modules(r2r);
	free(r2r->entries);
	free(r2r->ranges);
	free(r2r);
}

/* ---- answers -------------------------------------------------------------- */

size_t r2r_method_count(const struct r2r *r2r)
{
	return r2r->entry_count;
}

size_t r2r_undecodable_count(const struct r2r *r2r)
{
	return r2r->undecodable_count;
}

size_t r2r_ownerless_count(const struct r2r *r2r)
{
	return r2r->ownerless_count;
}

const struct r2r_range *r2r_ranges(const struct r2r *r2r, size_t *count_ret)
{
	*count_ret = r2r->range_count;
	return r2r->ranges;
}

size_t r2r_find(const struct r2r *r2r, uint32_t rva)
{
	const struct r2r_range *ranges = r2r->ranges;
	size_t count = ASCENDING_COUNT(r2r->range_count, i, ranges[i].rva <= rva);
	size_t found = count - 1;

	if (!count || rva - ranges[found].rva >= ranges[found].size_bytes)
		return SIZE_MAX;
	while (found && ranges[found - 1].rva == ranges[found].rva)
		found--;
	return found;
}
