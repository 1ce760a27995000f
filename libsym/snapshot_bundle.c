/* SPDX-License-Identifier: MIT */
#include "libsym/snapshot_bundle.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/format/bundle.h"
#include "libsym/inner_image.h"
#include "libsym/limits.h"
#include "libsym/memory_image.h"

enum {
	PAGE_BYTES = 4096,
	GRANULARITY_BYTES = 1 << 16,
	/* An image is a header page and its sections; gaps between them are mapped too. */
	MAX_LINES_OF_IMAGE = PE_MAX_SECTIONS * 2
};

static bool is_no_memory(const struct sym_error *error)
{
	return error && sym_error_code(error) == SYM_ERROR_NO_MEMORY;
}

DEFINE_GUARD(view, struct sparse_file *, sparse_file_deinit)

/*
 * The host keeps the mark in initialised data, which lies behind its code: the
 * segments are searched from the last one back.
 */
static struct sym_error *find_manifest(struct image *host, struct sparse_file *view,
				       uint64_t *offset_ret)
{
	*offset_ret = 0;
	for (size_t i = host->segment_count; i-- > 0 && !*offset_ret;) {
		const struct image_segment *segment = &host->segments[i];
		struct sym_error *error;

		if (segment->executable || segment->offset > view->size_bytes ||
		    segment->size_bytes > view->size_bytes - segment->offset)
			continue;
		error = sparse_file_need(view, host->path, segment->offset, segment->size_bytes);
		if (error)
			return error;
		bundle_find_header(view->data + segment->offset, (size_t)segment->size_bytes,
				   offset_ret);
	}
	return NULL;
}

struct sym_error *snapshot_read_manifest(struct image *host, struct sparse_file *view,
					 struct bundle *ret, bool *is_bundle_ret)
{
	uint64_t offset, size_bytes;
	struct sym_error *error = find_manifest(host, view, &offset);

	*is_bundle_ret = !error && offset;
	if (!*is_bundle_ret)
		return error;
	if (offset > view->size_bytes)
		return sym_error_create_path(SYM_ERROR_FORMAT, host->path, offset,
					     "the bundle's manifest lies beyond the end");
	size_bytes = view->size_bytes - offset;
	if (size_bytes > LIMIT_BUNDLE_MANIFEST_BYTES)
		size_bytes = LIMIT_BUNDLE_MANIFEST_BYTES;
	error = sparse_file_need(view, host->path, offset, size_bytes);
	if (!error)
		error = bundle_parse(view->data + offset, (size_t)size_bytes, view->size_bytes,
				     ret);
	return sym_error_with_path(error, host->path);
}

/* Lines of the host's file that show a part of [offset, offset + size_bytes), whole pages of it. */
static size_t lines_of_part(const struct image_group *group, const struct bundle_file *part,
			    uint32_t *lines, bool *has_code_ret)
{
	uint64_t first_page = part->offset & ~(uint64_t)(PAGE_BYTES - 1);
	size_t count = 0;

	*has_code_ret = false;
	for (size_t i = 0; i < group->mapping_count; i++) {
		const struct sym_mapping *line = &group->mappings[i];

		if (line->offset < first_page || line->offset >= part->offset + part->size_bytes ||
		    group->places[i].placed)
			continue;
		lines[count++] = (uint32_t)i;
		*has_code_ret |= line->protection & SYM_EXECUTE;
	}
	return count;
}

/* Is there a line that ends where the code of the image does, in whole pages? */
static bool fits_code(const struct image_group *group, const struct image *image, uint64_t offset,
		      const uint32_t *lines, size_t line_count)
{
	for (size_t i = 0; i < line_count; i++)
		for (size_t j = 0; j < image->segment_count; j++) {
			const struct sym_mapping *line = &group->mappings[lines[i]];
			const struct image_segment *segment = &image->segments[j];
			uint64_t end = offset + segment->offset + segment->size_bytes;
			uint64_t line_end =
				line->offset + (line->end_address - line->start_address);

			if (segment->executable && line->protection & SYM_EXECUTE &&
			    line_end == ((end + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1)))
				return true;
		}
	return false;
}

static struct sym_error *place_part(const struct group_opening *opening, const char *path,
				    struct image *image, uint64_t offset, const uint32_t *lines,
				    size_t line_count)
{
	struct placements placements;
	struct sym_error *error = placement_find(image, offset, opening->group->mappings, lines,
						 line_count, &placements);

	if (error)
		return error;
	error = image_group_place(opening, path, image, &placements, lines, line_count);
	placements_deinit(&placements);
	return error;
}

/* A part that is no image, as a module that says why. Takes `error` over. */
static struct sym_error *add_unreadable(const struct group_opening *opening, const char *path,
					struct sym_error *error)
{
	struct sym_image *module;
	struct sym_error *failure = image_group_add(opening, path, NULL, UINT64_MAX, &module);

	if (failure)
		sym_error_destroy(error);
	else
		module_set_trouble(module, error);
	return failure;
}

/*
 * Neighbours share pages, and so their lines fit both. `exactly`: only where a line ends
 * where the code does; otherwise only where none does, because a change of protection has split it.
 */
static struct sym_error *add_part(const struct group_opening *opening, const struct image *host,
				  const struct bundle_file *part, uint32_t *lines, bool exactly)
{
	char *path AUTO_FREE = NULL;
	struct image *image AUTO_IMAGE = NULL;
	struct sym_error *error;
	size_t line_count;
	bool has_code;

	if (part->type != BUNDLE_ASSEMBLY || part->compressed_size_bytes)
		return NULL;
	line_count = lines_of_part(opening->group, part, lines, &has_code);
	if (!has_code)
		return NULL;
	path = inner_image_path(opening->group->path, part->path, part->path_bytes);
	if (!path)
		return &sym_error_no_memory;
	error = inner_image_open(opening, host, path, part->offset, part->size_bytes, &image);
	if (is_no_memory(error))
		return error;
	if (error && exactly)
		return add_unreadable(opening, path, error);
	if (error) {
		sym_error_destroy(error);
		return NULL; /* has been said */
	}
	if (fits_code(opening->group, image, part->offset, lines, line_count) != exactly)
		return NULL;
	return place_part(opening, path, image, part->offset, lines, line_count);
}

struct sym_error *snapshot_add_bundle(const struct group_opening *opening, struct image *host,
				      bool *is_bundle_ret)
{
	struct sparse_file view = image_view(host);
	struct sparse_file *held GUARDED(view) = &view;
	uint32_t *lines AUTO_FREE = calloc(opening->group->mapping_count + 1, sizeof(*lines));
	struct bundle bundle = { 0 };
	struct sym_error *error;

	if (!lines)
		return &sym_error_no_memory;
	error = snapshot_read_manifest(host, held, &bundle, is_bundle_ret);
	if (is_no_memory(error))
		return error;
	if (error) {
		module_set_trouble(opening->group->modules[0], error);
		return NULL;
	}
	for (int exactly = 1; exactly >= 0; exactly--)
		for (size_t i = 0; !error && i < bundle.file_count; i++)
			error = add_part(opening, host, &bundle.files[i], lines, exactly);
	bundle_deinit(&bundle);
	return error;
}

/* ---- memory without a file ---- */

static bool begins_image(const struct group_opening *opening, uint64_t address)
{
	struct sym_error *error;
	char start[2];

	error = process_read_memory(opening->context->process, address, start, sizeof(start));
	if (!error)
		return start[0] == 'M' && start[1] == 'Z';
	sym_error_destroy(error);
	return false;
}

/* The end of the image's highest segment. */
static uint64_t image_end(const struct image *image, uint64_t base)
{
	uint64_t end = base;

	for (size_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (base + segment->position + segment->size_bytes > end)
			end = base + segment->position + segment->size_bytes;
	}
	return end;
}

static bool has_code_below(const struct image_group *group, size_t first, uint64_t end)
{
	for (size_t i = first; i < group->mapping_count && group->mappings[i].start_address < end &&
			       i - first < MAX_LINES_OF_IMAGE;
	     i++)
		if (!group->places[i].module && group->mappings[i].protection & SYM_EXECUTE)
			return true;
	return false;
}

/* Is the image that was at `base` there still? Its first page tells: with the time stamp, which is
 * a digest of the whole in a deterministic build, and the places of everything. */
static bool is_as_before(const struct process *process, const struct image *image, uint64_t base)
{
	struct sparse_file view = image_view(image);
	struct sparse_file *held GUARDED(view) = &view;
	uint8_t now[PAGE_BYTES];
	size_t size_bytes = view.size_bytes < PAGE_BYTES ? view.size_bytes : PAGE_BYTES;
	struct sym_error *error = process_read_memory(process, base, now, size_bytes);

	if (!error)
		error = sparse_file_need(held, image->path, 0, size_bytes);
	if (!error)
		return !memcmp(now, view.data, size_bytes);
	sym_error_destroy(error);
	return false;
}

/* Copying an image out of memory costs all its bytes. */
static struct sym_error *open_at(const struct group_opening *opening, uint64_t base,
				 struct image **ret)
{
	const struct image_group *before = opening->group->before;
	const struct process *process = opening->context->process;

	for (size_t i = 0; before && i < before->module_count; i++) {
		struct sym_image *module = before->modules[i];

		if (module->load_base == base && is_as_before(process, module->image, base)) {
			*ret = image_share(module->image);
			return NULL;
		}
	}
	return memory_image_open_pe(process, base, process->executable, ret);
}

/* *end_ret is written when there is one at `base`, which lies in the line `header`. */
static struct sym_error *add_memory_assembly(const struct group_opening *opening, size_t header,
					     uint64_t base, uint64_t *end_ret)
{
	const char *executable = opening->context->process->executable;
	struct image_group *group = opening->group;
	uint64_t end;
	struct image *image AUTO_IMAGE = NULL;
	char *path AUTO_FREE = NULL;
	struct sym_image *module;
	const char *name;
	struct sym_error *error = open_at(opening, base, &image);

	/* What only looked like an image, or went away, is none. */
	if (error && !is_no_memory(error)) {
		sym_error_destroy(error);
		return NULL;
	}
	if (error)
		return error;
	end = image_end(image, base);
	name = image_assembly_name(image);
	if (!name || !has_code_below(group, header + 1, end))
		return NULL;
	path = inner_image_path(executable, name, strlen(name));
	if (!path)
		return &sym_error_no_memory;
	error = image_group_add(opening, path, image, base, &module);
	for (size_t i = header;
	     !error && i < group->mapping_count && group->mappings[i].start_address < end; i++)
		if (!group->places[i].module)
			image_group_give(opening, i, module, true);
	if (!error)
		*end_ret = end;
	return error;
}

/*
 * Images begin at multiples of the runtime's allocation granularity (64 KiB), with pages that may
 * only be read. The kernel joins these with the last page of the image below where that is
 * read-only too: a header need not be at the start of a line.
 */
struct sym_error *snapshot_add_memory_assemblies(const struct group_opening *opening)
{
	const struct image_group *group = opening->group;
	struct sym_error *error = NULL;
	uint64_t end = 0;

	for (size_t i = 0; !error && i < group->mapping_count; i++) {
		const struct sym_mapping *line = &group->mappings[i];
		uint64_t address = line->start_address;

		if (line->protection != SYM_READ)
			continue;
		for (; !error && address < line->end_address;
		     address = (address | (GRANULARITY_BYTES - 1)) + 1)
			if (address >= end && begins_image(opening, address))
				error = add_memory_assembly(opening, i, address, &end);
	}
	if (error || !opening->group->module_count)
		return error;
	/* What was read is of this process only if it still is this process. */
	error = process_check(opening->context->process);
	if (!error || is_no_memory(error))
		return error;
	sym_error_destroy(error);
	image_group_forget(opening->group);
	return NULL;
}
