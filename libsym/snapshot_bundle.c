/* SPDX-License-Identifier: MIT */
#include "libsym/snapshot_bundle.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/path.h"
#include "libsym/format/bundle.h"
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

static struct sym_error *read_manifest(struct image *host, struct sparse_file *view,
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

/* "HOST!/NAME": the way tools write a file inside a file. */
static char *inner_path(const char *host, const char *name, size_t name_bytes)
{
	struct buf path;
	char *text;

	buf_init(&path, LIMIT_NAME_BYTES);
	buf_printf(&path, "%s!/%.*s", host, (int)name_bytes, name);
	text = buf_steal(&path, NULL);
	buf_deinit(&path);
	return text;
}

/* Lines of the host's file that show a part of [offset, offset + size_bytes), whole pages of it. */
static size_t lines_of_part(const struct image_collection *collection,
			    const struct mapped_file *file, const struct bundle_file *part,
			    uint32_t *lines, bool *has_code_ret)
{
	uint64_t first_page = part->offset & ~(uint64_t)(PAGE_BYTES - 1);
	size_t count = 0;

	*has_code_ret = false;
	for (size_t i = 0; i < file->mapping_count; i++) {
		const struct sym_mapping *line =
			&collection->snapshot->space->mappings[file->mapping_indexes[i]];

		if (line->offset < first_page || line->offset >= part->offset + part->size_bytes ||
		    collection->snapshot->is_placed[file->mapping_indexes[i]])
			continue;
		lines[count++] = file->mapping_indexes[i];
		*has_code_ret |= line->protection & SYM_EXECUTE;
	}
	return count;
}

/* Is there a line that ends where the code of the image does, in whole pages? */
static bool fits_code(const struct image_collection *collection, const struct image *image,
		      uint64_t offset, const uint32_t *lines, size_t line_count)
{
	const struct sym_mapping *mappings = collection->snapshot->space->mappings;

	for (size_t i = 0; i < line_count; i++)
		for (size_t j = 0; j < image->segment_count; j++) {
			const struct sym_mapping *line = &mappings[lines[i]];
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

static struct sym_error *place_part(struct image_collection *collection, const char *path,
				    struct image *image, uint64_t offset, const uint32_t *lines,
				    size_t line_count)
{
	struct placements placements;
	struct sym_error *error =
		placement_find(image, offset, collection->snapshot->space->mappings, lines,
			       line_count, &placements);

	if (error)
		return error;
	error = image_collection_place(collection, path, image, &placements, lines, line_count);
	placements_deinit(&placements);
	return error;
}

/* A part that is no image, as a module that says why. Takes `error` over. */
static struct sym_error *add_unreadable(struct image_collection *collection, const char *path,
					struct sym_error *error)
{
	struct sym_image *module;
	struct sym_error *failure = image_collection_add(collection, path, NULL, &module);

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
static struct sym_error *add_part(struct image_collection *collection,
				  const struct mapped_file *file, const struct image *host,
				  const struct bundle_file *part, uint32_t *lines, bool exactly)
{
	char *path AUTO_FREE = NULL;
	struct image *image AUTO_IMAGE = NULL;
	int fd AUTO_CLOSE = -1;
	struct sym_error *error;
	size_t line_count;
	bool has_code;

	if (part->type != BUNDLE_ASSEMBLY || part->compressed_size_bytes)
		return NULL;
	line_count = lines_of_part(collection, file, part, lines, &has_code);
	if (!has_code)
		return NULL;
	path = inner_path(file->path, part->path, part->path_bytes);
	fd = dup(host->fd);
	if (!path || fd < 0)
		return &sym_error_no_memory;
	error = image_open(fd, path, part->offset, part->size_bytes, &image);
	if (is_no_memory(error))
		return error;
	if (error && exactly)
		return add_unreadable(collection, path, error);
	if (error) {
		sym_error_destroy(error);
		return NULL; /* has been said */
	}
	if (fits_code(collection, image, part->offset, lines, line_count) != exactly)
		return NULL;
	steal_fd(&fd);
	error = image_collection_keep(collection, image);
	return error ? error
		     : place_part(collection, path, STEAL(image), part->offset, lines, line_count);
}

struct sym_error *snapshot_add_bundle(struct image_collection *collection,
				      const struct mapped_file *file, struct image *host,
				      uint32_t module, bool *is_bundle_ret)
{
	struct sparse_file view = image_view(host);
	struct sparse_file *held GUARDED(view) = &view;
	uint32_t *lines AUTO_FREE = calloc(file->mapping_count + 1, sizeof(*lines));
	struct bundle bundle = { 0 };
	struct sym_error *error;

	if (!lines)
		return &sym_error_no_memory;
	error = read_manifest(host, held, &bundle, is_bundle_ret);
	if (is_no_memory(error))
		return error;
	if (error) {
		module_set_trouble(image_collection_module(collection, module), error);
		return NULL;
	}
	for (int exactly = 1; exactly >= 0; exactly--)
		for (size_t i = 0; !error && i < bundle.file_count; i++)
			error = add_part(collection, file, host, &bundle.files[i], lines, exactly);
	bundle_deinit(&bundle);
	return error;
}

/* ---- memory without a file ---- */

static bool is_anonymous(const struct sym_mapping *line)
{
	return !line->path[0] && line->image_index == UINT32_MAX;
}

static bool begins_image(const struct image_collection *collection, uint64_t address)
{
	struct sym_error *error;
	char start[2];

	error = process_read_memory(collection->snapshot->process, address, start, sizeof(start));
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

static bool has_code_below(const struct image_collection *collection, size_t first, uint64_t end)
{
	const struct address_space *space = collection->snapshot->space;

	for (size_t i = first; i < space->mapping_count && space->mappings[i].start_address < end &&
			       i - first < MAX_LINES_OF_IMAGE;
	     i++)
		if (is_anonymous(&space->mappings[i]) &&
		    space->mappings[i].protection & SYM_EXECUTE)
			return true;
	return false;
}

/* *end_ret is written when there is one at `base`, which lies in the line `header`. */
static struct sym_error *add_memory_assembly(struct image_collection *collection, size_t header,
					     uint64_t base, uint64_t *end_ret)
{
	struct sym_snapshot *snapshot = collection->snapshot;
	struct sym_mapping *mappings = snapshot->space->mappings;
	uint64_t end;
	struct image *image AUTO_IMAGE = NULL;
	char *path AUTO_FREE = NULL;
	struct sym_image *module;
	const char *name;
	struct sym_error *error = memory_image_open_pe(snapshot->process, base,
						       snapshot->process->executable, &image);

	/* What only looked like an image, or went away, is none. */
	if (error && !is_no_memory(error)) {
		sym_error_destroy(error);
		return NULL;
	}
	if (error)
		return error;
	end = image_end(image, base);
	name = image_assembly_name(image);
	if (!name || !has_code_below(collection, header + 1, end))
		return NULL;
	path = inner_path(snapshot->process->executable, name, strlen(name));
	if (!path)
		return &sym_error_no_memory;
	error = image_collection_keep(collection, image);
	if (error)
		return error;
	error = image_collection_add(collection, path, STEAL(image), &module);
	if (error)
		return error;
	*end_ret = end;
	module->load_base = base;
	for (size_t i = header;
	     i < snapshot->space->mapping_count && mappings[i].start_address < end; i++)
		if (is_anonymous(&mappings[i]))
			image_collection_give(collection, (uint32_t)i,
					      (uint32_t)(collection->module_count - 1), true);
	return NULL;
}

/*
 * Images begin at multiples of the runtime's allocation granularity (64 KiB), with pages that may
 * only be read. The kernel joins these with the last page of the image below where that is
 * read-only too: a header need not be at the start of a line.
 */
struct sym_error *snapshot_add_memory_assemblies(struct image_collection *collection)
{
	const struct address_space *space = collection->snapshot->space;
	struct sym_error *error = NULL;
	uint64_t end = 0;

	for (size_t i = 0; !error && i < space->mapping_count; i++) {
		const struct sym_mapping *line = &space->mappings[i];
		uint64_t address = line->start_address;

		if (line->path[0] || line->protection != SYM_READ)
			continue;
		for (; !error && address < line->end_address;
		     address = (address | (GRANULARITY_BYTES - 1)) + 1)
			if (address >= end && begins_image(collection, address))
				error = add_memory_assembly(collection, i, address, &end);
	}
	return error;
}
