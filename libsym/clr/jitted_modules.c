/* SPDX-License-Identifier: MIT */
#include "libsym/clr/jitted_modules.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/format/dotnet/r2r_debug.h"
#include "libsym/image/bundled_assembly.h"
#include "libsym/image/image.h"
#include "libsym/image/pdb_search.h"

static void module_destroy(struct jitted_module *module)
{
	if (!module)
		return;
	image_destroy(module->image);
	pdb_file_close(module->pdb);
	free(module->path);
	free(module->reason);
	free(module);
}

void jitted_modules_deinit(struct jitted_module **modules)
{
	while (*modules) {
		struct jitted_module *next = (*modules)->next;

		module_destroy(*modules);
		*modules = next;
	}
}

/* ---- by address --------------------------------------------------------------------- */

/* The image that is mapped at `base` from its first byte on; NULL: none. */
static struct sym_image *image_at(const struct clr_target *target, uint64_t base)
{
	size_t line = address_space_find(target->space, base);
	const struct sym_mapping *mapping;
	struct sym_image *image = NULL;

	if (line == ADDRESS_SPACE_NONE)
		return NULL;
	mapping = &target->space->mappings[line];
	sym_error_destroy(clr_target_image_of(target, line, &image));
	if (!image || image_trouble(image) || sym_image_kind(image) < SYM_IMAGE_IL ||
	    (image->load_base != base && mapping->start_address - mapping->offset != base))
		return NULL;
	return image;
}

/* Where the PDB of a module without an image of its own may be: beside the program. */
static struct pdb_search search_beside_program(const struct clr_target *target)
{
	const struct sym_mapping *mapping = clr_target_runtime_mapping(target);
	struct sym_image *runtime = NULL;
	struct pdb_search search = { .roots.fd = -1 };

	if (mapping)
		sym_error_destroy(clr_target_image_of(
			target, (size_t)(mapping - target->space->mappings), &runtime));
	if (runtime && runtime->object)
		search = image_pdb_search(runtime);
	search.image_path = target->process->executable ? target->process->executable : "";
	return search;
}

static struct sym_error *read_copy(struct remote_memory *memory, const struct clr_target *target,
				   struct jitted_module *module)
{
	const struct pdb_search search = search_beside_program(target);
	struct module_copy copy = { 0 };
	struct sym_error *error = module_copy_read(memory, &module->place, &copy);

	if (sym_error_is_no_memory(error))
		return error;
	if (error) {
		module->reason = strdup(sym_error_message(error));
		sym_error_destroy(error);
		return NULL;
	}
	memcpy(module->mvid, copy.mvid, sizeof(module->mvid));
	error = pdb_search_find(&search, &copy.debug, &module->pdb, &module->reason);
	module_copy_deinit(&copy);
	return error;
}

/* Takes ownership of `module`, and adds it unless there is an error. */
static struct sym_error *add_module(struct jitted_module **modules, struct jitted_module *module,
				    struct sym_error *error, struct jitted_module **ret)
{
	if (error) {
		module_destroy(module);
		return error;
	}
	module->next = *modules;
	*modules = *ret = module;
	return NULL;
}

static struct sym_error *module_create(struct jitted_module **modules, struct remote_memory *memory,
				       const struct clr_target *target, uint64_t address,
				       const struct module_place *place, struct jitted_module **ret)
{
	struct jitted_module *module = calloc(1, sizeof(*module));
	struct sym_image *image = image_at(target, place->base);
	struct sym_error *error = NULL;

	if (!module)
		return &sym_error_no_memory;
	module->address = address;
	module->place = *place;
	if (image)
		module->image = image_share(image);
	else
		error = read_copy(memory, target, module);
	return add_module(modules, module, error, ret);
}

/* A module at the address of an unloaded one has another image. */
struct sym_error *jitted_modules_get(struct jitted_module **modules, struct remote_memory *memory,
				     const struct clr_target *target, uint64_t address,
				     const struct module_place *place, struct jitted_module **ret)
{
	struct jitted_module *module = *modules;

	while (module && (module->path || module->address != address ||
			  memcmp(&module->place, place, sizeof(*place)) != 0))
		module = module->next;
	*ret = module;
	return module ? NULL : module_create(modules, memory, target, address, place, ret);
}

/* ---- by path ------------------------------------------------------------------------ */

/* An assembly in a bundle: its metadata and the name of its PDB are read from there. */
static struct sym_error *read_bundled(const struct clr_target *target,
				      const struct bundled_assembly *bundled,
				      struct jitted_module *module)
{
	const struct pdb_search search = search_beside_program(target);
	struct pe_debug debug;
	uint8_t mvid[16];

	if (metadata_mvid(bundled_assembly_metadata(bundled), mvid))
		metadata_format_guid(mvid, module->mvid);
	pe_debug_read(bundled_assembly_pe(bundled), &debug);
	return pdb_search_find(&search, &debug, &module->pdb, &module->reason);
}

static struct sym_error *module_create_by_path(struct jitted_module **modules,
					       const struct clr_target *target, const char *path,
					       struct jitted_module **ret)
{
	AUTO_BUNDLED_ASSEMBLY struct bundled_assembly *bundled = NULL;
	struct jitted_module *module = calloc(1, sizeof(*module));
	struct sym_image *image = NULL;
	struct sym_error *error;

	if (!module)
		return &sym_error_no_memory;
	module->path = strdup(path);
	error = module->path ? target->ops->image_by_path(target->snapshot, path, &image, &bundled)
			     : &sym_error_no_memory;
	if (!error && image)
		module->image = image_share(image);
	else if (!error && bundled)
		error = read_bundled(target, bundled, module);
	else if (!error)
		module->reason = strdup("the file of its assembly is not known");
	return add_module(modules, module, error, ret);
}

struct sym_error *jitted_modules_get_by_path(struct jitted_module **modules,
					     const struct clr_target *target, const char *path,
					     struct jitted_module **ret)
{
	struct jitted_module *module = *modules;

	while (module && (!module->path || strcmp(module->path, path) != 0))
		module = module->next;
	*ret = module;
	return module ? NULL : module_create_by_path(modules, target, path, ret);
}

/* ---- from IL to a line ---------------------------------------------------------------- */

void jitted_module_name(const struct jitted_module *module, struct managed_line *line, uint32_t rid)
{
	line->token = (uint32_t)METADATA_METHOD_DEF << 24 | rid;
	line->mvid = module->image ? sym_image_mvid(module->image) : NULL;
	if (!module->image && *module->mvid)
		line->mvid = module->mvid;
}

void jitted_module_read_line(struct jitted_module *module, struct managed_line *line)
{
	const struct sym_pdb *pdb = module->pdb;
	const char *reason = module->reason;

	if (line->quality == SYM_LINE_NONE)
		return;
	if (module->image)
		pdb = image_pdb_file(module->image, &reason);
	managed_line_read(line, pdb, reason);
}
