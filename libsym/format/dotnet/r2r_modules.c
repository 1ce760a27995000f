/* SPDX-License-Identifier: MIT */
/*
 * The modules that an image refers to by number, and the component assemblies of a composite image.
 * The caller provides the metadata of other assemblies.
 *
 *   number 0                     the image itself (composite: System.Private.CoreLib)
 *   1 .. N                       AssemblyRef rows of the image's own metadata (composite: N = 0)
 *   N + 1                        header 6.3 and later: the manifest metadata (section 112) itself
 *   after that                   AssemblyRef rows of the manifest metadata
 *   section 115: rows of { CLI header, core header } directories; row i is the
 *   manifest's AssemblyRef i + 1; section 118: its MVID
 */
#include "libsym/format/dotnet/r2r_internal.h"

#include <stdlib.h>

static const uint32_t component_row_bytes = 16;
const char r2r_core_library[] = "System.Private.CoreLib";

/* Since 6.3 the manifest metadata has a module number of its own. */
static bool manifest_has_number(const struct r2r *r2r)
{
	return r2r->major_version > 6 || (r2r->major_version == 6 && r2r->minor_version >= 3);
}

uint32_t r2r_manifest_module(const struct r2r *r2r, uint32_t assembly_ref)
{
	return r2r->own_reference_count + assembly_ref + (manifest_has_number(r2r) ? 1 : 0);
}

static struct sym_error *open_manifest(struct r2r *r2r)
{
	struct pe_directory section = r2r_section(&r2r->header, R2R_SECTION_MANIFEST_METADATA);
	const uint8_t *bytes;
	struct sym_error *error;

	if (!section.rva || !section.size_bytes)
		return NULL;
	bytes = pe_bytes(r2r->pe, section.rva, section.size_bytes);
	if (!bytes)
		return sym_error_create(SYM_ERROR_FORMAT,
					"manifest metadata lies outside the image");
	error = metadata_open(bytes, section.size_bytes, &r2r->manifest_owned);
	r2r->manifest = r2r->manifest_owned;
	return error;
}

/* NULL if the image has no MVID for it: zeros stand for assemblies outside its version bubble. */
static const uint8_t *manifest_mvid(const struct r2r *r2r, uint32_t assembly_ref)
{
	struct pe_directory section =
		r2r_section(&r2r->header, R2R_SECTION_MANIFEST_ASSEMBLY_MVIDS);
	static const uint8_t none[16];
	const uint8_t *bytes;

	if (!section.rva || assembly_ref > section.size_bytes / 16)
		return NULL;
	bytes = pe_bytes(r2r->pe, section.rva, section.size_bytes);
	if (!bytes)
		return NULL;
	bytes += (size_t)(assembly_ref - 1) * 16;
	return memcmp(bytes, none, sizeof(none)) ? bytes : NULL;
}

static void name_modules(struct r2r *r2r, uint32_t manifest_count)
{
	for (uint32_t row = 1; row <= r2r->own_reference_count; row++)
		r2r->modules[row].name = metadata_assembly_ref_name(r2r->metadata, row);
	for (uint32_t row = 1; row <= manifest_count; row++) {
		struct r2r_module *module = &r2r->modules[r2r_manifest_module(r2r, row)];

		module->name = metadata_assembly_ref_name(r2r->manifest, row);
		module->mvid = manifest_mvid(r2r, row);
	}
	if (manifest_has_number(r2r) && r2r->manifest)
		r2r->modules[r2r->own_reference_count + 1].metadata = r2r->manifest;
	r2r->modules[0].metadata = r2r->metadata;
}

struct sym_error *r2r_open_modules(struct r2r *r2r)
{
	struct sym_error *error = open_manifest(r2r);
	uint32_t manifest_count = 0;

	if (error)
		return error;
	if (r2r->flavour == R2R_COMPOSITE)
		r2r->metadata = NULL;
	if (r2r->metadata)
		r2r->own_reference_count = metadata_row_count(r2r->metadata, METADATA_ASSEMBLY_REF);
	if (r2r->manifest)
		manifest_count = metadata_row_count(r2r->manifest, METADATA_ASSEMBLY_REF);
	r2r->module_count = (size_t)r2r->own_reference_count + manifest_count + 2;
	r2r->modules = calloc(r2r->module_count, sizeof(*r2r->modules));
	if (!r2r->modules)
		return &sym_error_no_memory;
	name_modules(r2r, manifest_count);
	return NULL;
}

void r2r_close_modules(struct r2r *r2r)
{
	for (size_t i = 0; r2r->modules && i < r2r->module_count; i++)
		metadata_close(r2r->modules[i].owned);
	free(r2r->modules);
	metadata_close(r2r->manifest_owned);
}

void r2r_use_module(void *context, uint32_t index)
{
	struct r2r *r2r = context;

	if (index < r2r->module_count)
		r2r->modules[index].is_used = true;
}

/* In a composite, a signature without a module number belongs to the core library (primitive types
 * and their methods). */
static void alias_core_library(struct r2r *r2r)
{
	struct r2r_module *own = &r2r->modules[0];

	own->name = r2r_core_library;
	own->is_used = true;
	for (size_t i = 1; i < r2r->module_count; i++)
		if (r2r->modules[i].name && !strcmp(r2r->modules[i].name, r2r_core_library)) {
			own->metadata = r2r->modules[i].metadata;
			own->mvid = r2r->modules[i].mvid;
		}
}

static void find_module(const struct r2r *r2r, struct r2r_module *module)
{
	if (module->is_used && !module->metadata && module->name && r2r->assemblies)
		module->metadata =
			r2r->assemblies->find(r2r->assemblies->context, module->name, module->mvid);
}

static void write_mvids(struct r2r *r2r)
{
	for (size_t i = 0; i < r2r->module_count; i++) {
		struct r2r_module *module = &r2r->modules[i];
		uint8_t mvid[16];

		if (module->metadata && module->metadata != r2r->manifest &&
		    metadata_mvid(module->metadata, mvid))
			metadata_format_guid(mvid, module->mvid_text);
	}
}

void r2r_find_modules(struct r2r *r2r)
{
	if (r2r->flavour == R2R_COMPOSITE)
		alias_core_library(r2r);
	r2r->core.name = r2r_core_library;
	for (size_t i = 0; i < r2r->module_count; i++)
		find_module(r2r, &r2r->modules[i]);
	find_module(r2r, &r2r->core);
	if (r2r->flavour == R2R_COMPOSITE)
		write_mvids(r2r);
}

const struct metadata *r2r_module_metadata(const struct r2r *r2r, uint32_t index,
					   const char **why_ret)
{
	if (index >= r2r->module_count ||
	    (!r2r->modules[index].metadata && !r2r->modules[index].name)) {
		*why_ret = "module number without an assembly";
		return NULL;
	}
	if (!r2r->modules[index].metadata)
		*why_ret = "metadata of another assembly is not available";
	return r2r->modules[index].metadata;
}

/* The IL metadata of a component can be embedded in the composite. */
static struct sym_error *open_embedded(struct r2r *r2r, struct r2r_module *module,
				       struct pe_directory cli_header)
{
	const uint8_t *bytes = pe_bytes(r2r->pe, cli_header.rva, 16);
	struct pe_directory directory;
	struct sym_error *error;
	struct reader reader;

	if (!bytes)
		return sym_error_create(SYM_ERROR_FORMAT,
					"CLI header of a component lies outside the image");
	reader = reader_over(bytes, 16);
	reader_skip(&reader, 8);
	directory.rva = reader_u32(&reader);
	directory.size_bytes = reader_u32(&reader);
	bytes = r2r_table(r2r, directory);
	if (!bytes)
		return sym_error_create(SYM_ERROR_FORMAT,
					"metadata of a component lies outside the image");
	error = metadata_open(bytes, directory.size_bytes, &module->owned);
	if (!error)
		module->metadata = module->owned;
	return error;
}

static struct sym_error *read_component(struct r2r *r2r, struct reader *row, uint32_t number)
{
	uint32_t module = r2r_manifest_module(r2r, number + 1);
	struct pe_directory cli_header, core_header;
	struct r2r_core_header header;
	size_t available_bytes;
	const uint8_t *bytes;
	struct reader reader;

	cli_header.rva = reader_u32(row);
	cli_header.size_bytes = reader_u32(row);
	core_header.rva = reader_u32(row);
	core_header.size_bytes = reader_u32(row);
	if (module >= r2r->module_count)
		return sym_error_create(SYM_ERROR_FORMAT, "component assembly without a name");
	if (cli_header.rva && cli_header.size_bytes && !r2r->modules[module].metadata) {
		struct sym_error *error = open_embedded(r2r, &r2r->modules[module], cli_header);

		if (error)
			return error;
	}
	bytes = pe_bytes_to_end(r2r->pe, core_header.rva, &available_bytes);
	if (!bytes)
		return sym_error_create(SYM_ERROR_FORMAT,
					"tables of a component lie outside the image");
	reader = reader_over(bytes, available_bytes);
	if (!r2r_read_core_header(&reader, &header))
		return sym_error_create(SYM_ERROR_FORMAT, "malformed header of a component");
	r2r->modules[module].is_used = true;
	return r2r_read_method_defs(r2r, &header, module, UINT32_MAX);
}

struct sym_error *r2r_read_components(struct r2r *r2r)
{
	struct pe_directory section = r2r_section(&r2r->header, R2R_SECTION_COMPONENT_ASSEMBLIES);
	uint32_t count = section.size_bytes / component_row_bytes;
	const uint8_t *bytes = pe_bytes(r2r->pe, section.rva, section.size_bytes);
	struct reader reader;

	if (!bytes)
		return sym_error_create(SYM_ERROR_FORMAT,
					"component assemblies lie outside the image");
	reader = reader_over(bytes, section.size_bytes);
	for (uint32_t i = 0; i < count; i++) {
		struct sym_error *error = read_component(r2r, &reader, i);

		if (error)
			return error;
	}
	return NULL;
}
