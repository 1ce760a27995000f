/* SPDX-License-Identifier: MIT */
/*
 * The header and the tables of a ReadyToRun image, and the extent of every
 * method in it. Knows no names (r2r_name.c) and no signatures (r2r_instance.c).
 *
 *   header: 'RTR\0', u16 major, u16 minor, then the core header:
 *   u32 flags, u32 n, n x { u32 section type, u32 rva, u32 size }
 *   102 runtime functions: begin rva [, end rva], unwind rva, sorted by begin
 *   103 method entry points by MethodDef rid; 109 those of instantiations
 *   101 what code refers to; stubs that resume methods (r2r_resumption.c)
 *   120 pairs of (first runtime function of a cold part, of its method)
 *
 * A method owns the runtime functions from its own up to the next method's:
 * its body and, behind that, its funclets (catch, finally, filter).
 */
#include "libsym/format/r2r_internal.h"

#include <stdlib.h>

#include "libsym/format/native_format.h"
#include "libsym/format/r2r_functions.h"

static const uint32_t r2r_signature = 0x00525452;  /* "RTR\0" */
static const uint32_t ngen_signature = 0x0045474e; /* "NGE\0" */
static const uint32_t flag_component = 0x20;
static const uint32_t max_sections = 256; /* some 25 exist */
static const uint16_t newest_major_version = 26;
static const uint16_t oldest_major_version = 2;

static struct sym_error *format_error(const char *what)
{
	return sym_error_create(SYM_ERROR_FORMAT, "not a usable ReadyToRun image: %s", what);
}

/* ---- headers -------------------------------------------------------------- */

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

/* rva of the export with this name; 0 when there is none. */
static uint32_t exported_rva(const struct pe *pe, const char *wanted)
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

/* A reader at the native header; not ok when there is none. */
static struct reader native_header(const struct pe *pe)
{
	uint32_t rva = pe->managed_native_header.rva;
	struct reader reader = reader_over(NULL, 0);
	size_t available_bytes;
	const uint8_t *bytes;

	if (!rva && !pe->cli.rva)
		rva = exported_rva(pe, "RTR_HEADER");
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
	struct reader reader = native_header(pe);
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
	/* A file in the same directory; a path would lead elsewhere. */
	return name && *name && !strchr(name, '/') && strcmp(name, "..") ? name : NULL;
}

const uint8_t *r2r_table(struct r2r *r2r, struct pe_directory directory)
{
	const uint8_t *bytes = pe_bytes(r2r->pe, directory.rva, directory.size_bytes);

	if (!bytes || directory.size_bytes > r2r->pe->size_bytes - r2r->table_bytes)
		return NULL;
	r2r->table_bytes += directory.size_bytes;
	return bytes;
}

/* ---- entries -------------------------------------------------------------- */

bool r2r_add_entry(struct r2r *r2r, uint32_t function, uint32_t locator, uint32_t module)
{
	/* An entry takes at least a byte of the image: more of them means that bytes are read
	 * twice. */
	if (r2r->entry_count >= r2r->pe->size_bytes || r2r->entry_count >= UINT32_MAX)
		return false;
	if (r2r->entry_count == r2r->entry_capacity) {
		size_t capacity = r2r->entry_capacity ? 2 * r2r->entry_capacity : 256;
		struct r2r_entry *entries = reallocarray(r2r->entries, capacity, sizeof(*entries));

		if (!entries) {
			r2r->has_no_memory = true;
			return false;
		}
		r2r->entries = entries;
		r2r->entry_capacity = capacity;
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

	/* Not behind the entry point, but so many bytes before. */
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
		return format_error("method entry points lie outside the image");
	reader = reader_over(bytes, section.size_bytes);
	if (!native_format_array(&reader, 0, max_rid, visit_method_def, &walk))
		return r2r_table_error(r2r, "method entry points");
	return NULL;
}

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

static struct sym_error *read_image(struct r2r *r2r)
{
	struct sym_error *error = r2r_open_modules(r2r);

	if (error || r2r->flavour == R2R_COMPONENT)
		return error;
	if (r2r->flavour == R2R_PLAIN && !r2r->metadata)
		return format_error("no metadata");
	error = r2r_read_functions(r2r);
	if (!error)
		error = read_entries(r2r);
	if (!error)
		error = r2r_find_modules(r2r);
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
	r2r_close_modules(r2r);
	free(r2r->entries);
	free(r2r->ranges);
	free(r2r->buckets);
	free(r2r);
}

/* ---- answers -------------------------------------------------------------- */

uint16_t r2r_major_version(const struct r2r *r2r)
{
	return r2r->major_version;
}

uint16_t r2r_minor_version(const struct r2r *r2r)
{
	return r2r->minor_version;
}

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

/* How many ranges begin at or below `rva`, of which the first `low` do and none from `high` on. */
static size_t count_up_to(const struct r2r_range *ranges, uint32_t rva, size_t low, size_t high)
{
	const size_t few = 8; /* counted without a branch that would be guessed wrong */
	size_t found;

	while (high - low > few) {
		size_t middle = low + (high - low) / 2;

		if (ranges[middle].rva <= rva)
			low = middle + 1;
		else
			high = middle;
	}
	found = low;
	for (size_t i = low; i < high; i++)
		found += ranges[i].rva <= rva;
	return found;
}

size_t r2r_find(const struct r2r *r2r, uint32_t rva)
{
	const struct r2r_range *ranges = r2r->ranges;
	size_t bucket, found;

	if (!r2r->range_count || rva < ranges[0].rva)
		return SIZE_MAX;
	bucket = (rva - ranges[0].rva) >> r2r->bucket_shift;
	if (bucket >= r2r->bucket_count)
		bucket = r2r->bucket_count - 1;
	/* The first range begins below, so at least one is counted. */
	found = count_up_to(ranges, rva, r2r->buckets[bucket], r2r->buckets[bucket + 1]) - 1;
	if (rva - ranges[found].rva >= ranges[found].size_bytes)
		return SIZE_MAX;
	while (found && ranges[found - 1].rva == ranges[found].rva)
		found--;
	return found;
}
