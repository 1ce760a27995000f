/* SPDX-License-Identifier: MIT */
/*
 * How an rva gets its line.
 *
 *   rva -> range of a method -> native offset; debug information (section 105) -> IL offset
 *   method -> its definition -> the module of that -> the PDB of that module -> line
 *
 * The module is the image itself, except in composites and larger version bubbles.
 */
#include "libsym/image/image_lines.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/image/image.h"
#include "libsym/image/pdb_search.h"

/* A module that is not the image: the component of a composite, or one of a version bubble. */
struct foreign_module {
	struct foreign_module *next;
	const struct metadata *metadata; /* identifies it */
	const struct pe *pe;
	struct sym_pdb *pdb; /* NULL: `reason` says why */
	char *reason;
	char mvid[37];
};

static void foreign_modules_destroy(struct foreign_module *modules)
{
	while (modules) {
		struct foreign_module *next = modules->next;

		pdb_file_close(modules->pdb);
		free(modules->reason);
		free(modules);
		modules = next;
	}
}

/* ---- modules --------------------------------------------------------------------- */

/* NULL when out of memory. */
static struct foreign_module *foreign_create(struct sym_image *image,
					     struct assembly_lookup *lookup,
					     const struct metadata *metadata)
{
	struct foreign_module *foreign = calloc(1, sizeof(*foreign));
	struct sym_error *error;
	struct pdb_search search;
	const char *path = NULL;
	struct pe_debug debug;
	uint8_t mvid[16];

	if (!foreign)
		return NULL;
	foreign->metadata = metadata;
	if (metadata_mvid(metadata, mvid))
		metadata_format_guid(mvid, foreign->mvid);
	foreign->pe = assembly_lookup_pe(lookup, metadata, &path);
	if (!foreign->pe) {
		foreign->reason = strdup("the file of its assembly is not known");
		return foreign;
	}
	search = image_pdb_search(image);
	if (path)
		search.image_path = path;
	pe_debug_read(foreign->pe, &debug);
	error = pdb_search_find(&search, &debug, &foreign->pdb, &foreign->reason);
	if (!error)
		return foreign;
	sym_error_destroy(error);
	foreign_modules_destroy(foreign);
	return NULL;
}

/* The search of a PDB can take long, so the lock is not that of the sources. */
static const struct foreign_module *find_foreign(struct sym_image *image,
						 struct assembly_lookup *lookup,
						 const struct metadata *metadata)
{
	struct foreign_module *found;

	pthread_mutex_lock(&image->foreign_lock);
	for (found = image->foreign; found && found->metadata != metadata; found = found->next)
		;
	if (!found) {
		found = foreign_create(image, lookup, metadata);
		if (found) {
			found->next = image->foreign;
			image->foreign = found;
			image->destroy_foreign = foreign_modules_destroy;
		}
	}
	pthread_mutex_unlock(&image->foreign_lock);
	return found;
}

/* ---- lines ------------------------------------------------------------------------ */

static void read_own_line(struct sym_image *image, const struct precompiled *precompiled,
			  const struct r2r_definition_of_entry *definition, enum il_quality quality,
			  uint32_t il_offset, struct managed_line *line)
{
	const struct sym_pdb *pdb = NULL;
	const char *reason = NULL;

	line->mvid = object_file_mvid_text(image->object);
	managed_line_set_il(
		line, quality, il_offset,
		pe_il_bytes(precompiled_pe(precompiled), definition->metadata, definition->rid));
	if (line->quality != SYM_LINE_NONE)
		pdb = image_pdb_file(image, &reason);
	managed_line_read(line, pdb, reason);
}

static void read_foreign_line(const struct foreign_module *foreign,
			      const struct r2r_definition_of_entry *definition,
			      enum il_quality quality, uint32_t il_offset,
			      struct managed_line *line)
{
	uint32_t il_bytes = 0;

	if (!foreign) {
		line->reason = "out of memory";
		return;
	}
	line->mvid = *foreign->mvid ? foreign->mvid : NULL;
	if (foreign->pe)
		il_bytes = pe_il_bytes(foreign->pe, definition->metadata, definition->rid);
	managed_line_set_il(line, quality, il_offset, il_bytes);
	managed_line_read(line, foreign->pdb, foreign->reason);
}

bool image_find_line(struct sym_image *image, uint32_t rva, struct managed_line *ret)
{
	struct assembly_lookup *lookup;
	const struct precompiled *precompiled = image_precompiled(image, &lookup);
	const struct r2r *r2r = precompiled ? precompiled_r2r(precompiled) : NULL;
	size_t found = r2r ? r2r_find(r2r, rva) : SIZE_MAX, count;
	struct r2r_definition_of_entry definition;
	const struct r2r_range *range;
	struct debug_info info;
	enum il_quality quality;
	uint32_t il_offset = 0;

	if (found == SIZE_MAX)
		return false;
	range = &r2r_ranges(r2r, &count)[found];
	*ret = managed_line_none("code that the runtime or the compiler of the image made");
	if (range->kind == R2R_STUB ||
	    !r2r_debug_method(r2r, range->entry, &definition, &ret->reason))
		return true;
	ret->token = (uint32_t)METADATA_METHOD_DEF << 24 | definition.rid;
	ret->reason = "the image has no debug information for this method";
	if (range->kind == R2R_COLD) {
		ret->reason = "the cold part of a method";
		return true;
	}
	if (!r2r_debug_find(r2r, range->entry, &info)) {
		ret->reason = info.failure ? info.failure : ret->reason;
		return true;
	}
	quality = il_map_find(il_map_begin(info.bounds, info.bounds_bytes, info.form),
			      rva - range->rva, &il_offset);
	if (definition.is_own)
		read_own_line(image, precompiled, &definition, quality, il_offset, ret);
	else
		read_foreign_line(find_foreign(image, lookup, definition.metadata), &definition,
				  quality, il_offset, ret);
	return true;
}

/* Without a PDB no row has a line. Most images of a framework have none. */
static bool has_pdb(struct sym_image *image, struct assembly_lookup *lookup, const struct r2r *r2r,
		    const struct r2r_range *range)
{
	struct r2r_definition_of_entry definition;
	const struct foreign_module *foreign;
	const char *reason;

	if (!r2r_debug_method(r2r, range->entry, &definition, &reason))
		return false;
	if (definition.is_own)
		return image_pdb_file(image, &reason);
	foreign = find_foreign(image, lookup, definition.metadata);
	return foreign && foreign->pdb;
}

void image_append_rows(const struct sym_answer *answer, struct buf *ret)
{
	const uint64_t rva = answer->image_position;
	struct sym_image *image = (struct sym_image *)answer->image; /* it belongs to the library */
	const struct precompiled *precompiled = NULL;
	struct assembly_lookup *lookup;
	const struct r2r *r2r = NULL;
	const struct r2r_range *range;
	struct debug_info info;
	size_t found, count;

	if (answer->status == SYM_RESOLVED && image && image->object &&
	    image->object->kind != SYM_IMAGE_ELF && rva <= UINT32_MAX)
		precompiled = image_precompiled(image, &lookup);
	r2r = precompiled ? precompiled_r2r(precompiled) : NULL;
	found = r2r ? r2r_find(r2r, (uint32_t)rva) : SIZE_MAX;
	if (found == SIZE_MAX)
		return;
	range = &r2r_ranges(r2r, &count)[found];
	if (range->kind != R2R_STUB && range->kind != R2R_COLD &&
	    has_pdb(image, lookup, r2r, range) && r2r_debug_find(r2r, range->entry, &info))
		il_map_append_rows(
			il_map_begin(info.bounds, info.bounds_bytes, info.form),
			(struct il_code){ answer->address - (rva - range->rva), range->size_bytes },
			ret);
}

struct sym_error *image_describe_whole(struct sym_image *image, uint64_t position,
				       struct sym_result *result, size_t number)
{
	struct sym_answer *answer = &result->slots[number];
	struct sym_error *error = image_describe(image, position, result, number);
	struct managed_line line;

	if (error || !(result->fields & SYM_FIELD_LINES))
		return error;
	answer->il_offset = UINT32_MAX;
	if (image->object && image->object->kind != SYM_IMAGE_ELF &&
	    answer->status == SYM_RESOLVED && position <= UINT32_MAX &&
	    image_find_line(image, (uint32_t)position, &line))
		managed_line_answer(&line, answer);
	return NULL;
}
