/* SPDX-License-Identifier: MIT */
#include "libsym/clr/module_place.h"

#include "libsym/base/sparse_memory.h"
#include "libsym/format/dotnet/metadata.h"
#include "libsym/limits.h"

/* In Module.Flags: EditAndContinue. */
static const uint32_t editable_flag = 0x8;

void module_place_read(struct remote_memory *memory, const struct layout *layout, uint64_t module,
		       struct module_place *ret)
{
	uint32_t flags = remote_u32(memory, module + layout->module.flags);
	uint64_t assembly = remote_u64(memory, module + layout->module.assembly);
	uint64_t at = remote_u64(memory, module + layout->module.pe_assembly);

	*ret = (struct module_place){ .is_editable = (flags & editable_flag) != 0 };
	ret->is_collectible = remote_u8(memory, assembly + layout->assembly.is_collectible) != 0;
	if (at)
		at = remote_u64(memory, at + layout->pe_assembly.image);
	if (at)
		at = remote_u64(memory, at + layout->pe_image.loaded_layout);
	if (!at)
		return;
	ret->base = remote_u64(memory, at + layout->pe_image_layout.base);
	ret->size_bytes = remote_u32(memory, at + layout->pe_image_layout.size_bytes);
	ret->is_mapped = remote_u32(memory, at + layout->pe_image_layout.flags) & 1;
}

/* ---- a copy ------------------------------------------------------------------------- */

void module_copy_deinit(struct module_copy *copy)
{
	if (copy->bytes)
		sparse_memory_destroy(copy->bytes, copy->size_bytes);
	*copy = (struct module_copy){ 0 };
}

static struct sym_error *copy_range(struct remote_memory *memory, const struct module_place *place,
				    struct module_copy *copy, size_t offset, size_t size_bytes)
{
	if (offset > copy->size_bytes || size_bytes > copy->size_bytes - offset)
		return sym_error_create(SYM_ERROR_FORMAT, "a module that ends beyond its image");
	return remote_read_now(memory, place->base + offset, copy->bytes + offset, size_bytes,
			       "a module");
}

/* Copies what a directory of the image covers. One outside the image is left out. */
static struct sym_error *copy_part(struct remote_memory *memory, const struct module_place *place,
				   struct module_copy *copy, const struct pe *pe,
				   struct pe_directory part)
{
	const uint8_t *bytes = part.rva ? pe_bytes(pe, part.rva, part.size_bytes) : NULL;

	return bytes ? copy_range(memory, place, copy, (size_t)(bytes - copy->bytes),
				  part.size_bytes)
		     : NULL;
}

static void read_mvid(const struct pe *pe, struct module_copy *copy)
{
	const uint8_t *bytes = pe_bytes(pe, pe->metadata.rva, pe->metadata.size_bytes);
	struct metadata *metadata = NULL;
	uint8_t mvid[16];

	if (!pe->metadata.rva || !bytes)
		return;
	sym_error_destroy(metadata_open(bytes, pe->metadata.size_bytes, &metadata));
	if (metadata && metadata_mvid(metadata, mvid))
		metadata_format_guid(mvid, copy->mvid);
	metadata_close(metadata);
}

static struct sym_error *copy_all(struct remote_memory *memory, const struct module_place *place,
				  struct module_copy *copy)
{
	enum pe_layout layout = place->is_mapped ? PE_LAYOUT_LOADED : PE_LAYOUT_FILE;
	size_t header_bytes =
		copy->size_bytes < REMOTE_PAGE_BYTES ? copy->size_bytes : REMOTE_PAGE_BYTES;
	struct sym_error *error = copy_range(memory, place, copy, 0, header_bytes);
	struct pe_debug_entry entry;
	struct pe pe;

	if (!error)
		error = pe_parse(&pe, copy->bytes, copy->size_bytes, layout);
	if (!error)
		error = copy_part(memory, place, copy, &pe, pe.cli);
	if (!error)
		error = copy_part(memory, place, copy, &pe, pe.debug);
	if (!error)
		error = pe_parse(&pe, copy->bytes, copy->size_bytes, layout);
	if (!error)
		error = copy_part(memory, place, copy, &pe, pe.metadata);
	for (unsigned int i = 0; !error && pe_debug_entry(&pe, i, &entry); i++)
		error = copy_part(memory, place, copy, &pe, entry.content);
	if (error)
		return error;
	pe_debug_read(&pe, &copy->debug);
	read_mvid(&pe, copy);
	return NULL;
}

struct sym_error *module_copy_read(struct remote_memory *memory, const struct module_place *place,
				   struct module_copy *ret)
{
	struct module_copy copy = { .size_bytes = place->size_bytes };
	struct sym_error *error;

	if (!place->base || !place->size_bytes || place->size_bytes > LIMIT_BUNDLED_BYTES)
		return sym_error_create(SYM_ERROR_LIMIT,
					"a module without an image of a usual size");
	copy.bytes = sparse_memory_create(copy.size_bytes);
	if (!copy.bytes)
		return &sym_error_no_memory;
	error = copy_all(memory, place, &copy);
	if (error)
		module_copy_deinit(&copy);
	else
		*ret = copy;
	return error;
}
