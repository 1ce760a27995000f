/* SPDX-License-Identifier: MIT */
/*
 * How the assemblies of a single-file application become images.
 *
 * Stored assemblies: the manifest of the bundle has their offsets. The lines that contain their
 * pages are placed (placement.h).
 * Unpacked assemblies: every page of anonymous memory that starts with "MZ" at a multiple of 64
 * KiB, with code above it, is tried as a PE image. An image is copied from memory once; later
 * snapshots compare its first page only.
 */
#include "libsym/image/discover_bundle.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/budget.h"
#include "libsym/budget_api.h"
#include "libsym/image/bundle_manifest.h"
#include "libsym/image/embedded_image.h"
#include "libsym/process/memory_image.h"

enum {
	PAGE_BYTES = 4096,
	GRANULARITY_BYTES = 1 << 16,
	/* A header page and the sections; gaps between them are mapped too. */
	MAX_LINES_OF_IMAGE = PE_MAX_SECTIONS * 2
};

DEFINE_GUARD(view, struct sparse_file *, sparse_file_deinit)

/* Lines of the host's file. A bundle has thousands of files, and a process may map it as often. */
struct bundle_lines {
	uint32_t *by_offset; /* all numbers of lines */
	uint32_t *found;     /* room for as many */
};

static int compare_offsets(const void *left, const void *right, void *mappings)
{
	const struct sym_mapping *lines = mappings;
	uint64_t a = lines[*(const uint32_t *)left].offset,
		 b = lines[*(const uint32_t *)right].offset;

	return (a > b) - (a < b);
}

static int compare_numbers(const void *left, const void *right)
{
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return (a > b) - (a < b);
}

static bool read_lines(const struct mapped_file *group, struct bundle_lines *lines)
{
	lines->by_offset = calloc(group->mapping_count + 1, sizeof(*lines->by_offset));
	lines->found = calloc(group->mapping_count + 1, sizeof(*lines->found));
	if (!lines->by_offset || !lines->found)
		return false;
	for (size_t i = 0; i < group->mapping_count; i++)
		lines->by_offset[i] = (uint32_t)i;
	qsort_r(lines->by_offset, group->mapping_count, sizeof(*lines->by_offset), compare_offsets,
		group->mappings);
	return true;
}

/*
 * Collects the lines of the host's file that contain whole pages of [offset, offset + size_bytes),
 * by address.
 */
static size_t lines_of_part(const struct mapped_file *group, const struct bundle_file *part,
			    struct bundle_lines *lines, bool *has_code_ret)
{
	const struct sym_mapping *mappings = group->mappings;
	uint64_t first_page = part->offset & ~(uint64_t)(PAGE_BYTES - 1);
	size_t first = ASCENDING_COUNT(group->mapping_count, i,
				       mappings[lines->by_offset[i]].offset < first_page);
	size_t count = 0;

	*has_code_ret = false;
	for (size_t i = first; i < group->mapping_count; i++) {
		uint32_t number = lines->by_offset[i];

		if (mappings[number].offset >= part->offset + part->size_bytes)
			break;
		if (group->places[number].placed)
			continue;
		lines->found[count++] = number;
		*has_code_ret |= mappings[number].protection & SYM_EXECUTE;
	}
	if (count)
		qsort(lines->found, count, sizeof(*lines->found), compare_numbers);
	return count;
}

/* True when a line ends at the page where the code of the image ends. */
static bool fits_code(const struct mapped_file *group, const struct object_file *object,
		      uint64_t offset, const uint32_t *lines, size_t line_count)
{
	for (size_t i = 0; i < line_count; i++)
		for (size_t j = 0; j < object->segment_count; j++) {
			const struct sym_mapping *line = &group->mappings[lines[i]];
			const struct object_segment *segment = &object->segments[j];
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
				    struct object_file *object, uint64_t offset,
				    const uint32_t *lines, size_t line_count)
{
	struct placements placements;
	struct sym_error *error = placement_find(object, offset, opening->group->mappings, lines,
						 line_count, &placements);

	if (error)
		return error;
	error = mapped_file_place(opening, path, object, &placements, lines, line_count);
	placements_deinit(&placements);
	return error;
}

/* Adds an image with a problem, for a part that cannot be used. Takes ownership of `error`. */
static struct sym_error *add_unreadable(const struct group_opening *opening, const char *path,
					struct sym_error *error)
{
	struct sym_image *image;
	struct sym_error *failure = mapped_file_add(opening, path, NULL, UINT64_MAX, &image);

	if (failure)
		sym_error_destroy(error);
	else
		image_set_trouble(image, error);
	return failure;
}

/*
 * Adjacent parts share pages, so lines can fit both.
 * `exactly`: requires a line that ends where the code does. Otherwise requires that none does: a
 * change of protection has split the line.
 */
static struct sym_error *add_part(const struct group_opening *opening,
				  const struct object_file *host, const struct bundle_file *part,
				  struct bundle_lines *lines, bool exactly)
{
	char *path AUTO_FREE = NULL;
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	struct sym_error *error;
	size_t line_count;
	bool has_code;

	if (part->type != BUNDLE_ASSEMBLY || part->compressed_size_bytes)
		return NULL;
	line_count = lines_of_part(opening->group, part, lines, &has_code);
	if (!has_code)
		return NULL;
	error = budget_check_time(object_file_account(host), host->path);
	if (error)
		return error;
	path = embedded_image_path(opening->group->path, part->path, part->path_bytes);
	if (!path)
		return &sym_error_no_memory;
	error = embedded_image_open(opening, host, path, part->offset, part->size_bytes, &object);
	if (sym_error_is_no_memory(error))
		return error;
	if (error && exactly)
		return add_unreadable(opening, path, error);
	if (error) {
		sym_error_destroy(error);
		return NULL; /* reported before */
	}
	if (fits_code(opening->group, object, part->offset, lines->found, line_count) != exactly)
		return NULL;
	return place_part(opening, path, object, part->offset, lines->found, line_count);
}

static struct sym_error *add_parts(const struct group_opening *opening,
				   const struct object_file *host, const struct bundle *bundle,
				   struct bundle_lines *lines)
{
	struct budget_account *span AUTO_BUDGET_SPAN = budget_span(object_file_account(host));
	struct sym_error *error = NULL;

	if (!read_lines(opening->group, lines))
		return &sym_error_no_memory;
	for (int exactly = 1; exactly >= 0; exactly--)
		for (size_t i = 0; !error && i < bundle->file_count; i++)
			error = add_part(opening, host, &bundle->files[i], lines, exactly);
	return error;
}

struct sym_error *snapshot_add_bundle(const struct group_opening *opening, struct object_file *host,
				      bool *is_bundle_ret)
{
	struct sparse_file view = object_file_view(host);
	struct sparse_file *held GUARDED(view) = &view;
	struct bundle_lines lines = { 0 };
	struct bundle bundle = { 0 };
	struct sym_error *error = bundle_manifest_read(host, held, &bundle, is_bundle_ret);

	if (!error)
		error = add_parts(opening, host, &bundle, &lines);
	bundle_deinit(&bundle);
	free(lines.by_offset);
	free(lines.found);
	if (sym_error_is_no_memory(error))
		return error;
	if (error)
		image_set_trouble(opening->group->images[0], error);
	return NULL;
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

/* Address of the end of the image's highest segment. */
static uint64_t image_end(const struct object_file *object, uint64_t base)
{
	uint64_t end = base;

	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];

		if (base + segment->position + segment->size_bytes > end)
			end = base + segment->position + segment->size_bytes;
	}
	return end;
}

static bool has_code_below(const struct mapped_file *group, size_t first, uint64_t end)
{
	for (size_t i = first; i < group->mapping_count && group->mappings[i].start_address < end &&
			       i - first < MAX_LINES_OF_IMAGE;
	     i++)
		if (!group->places[i].image && group->mappings[i].protection & SYM_EXECUTE)
			return true;
	return false;
}

/*
 * True when the image that was at `base` is still there.
 * Its first page decides: it has the time stamp, which is a digest of a deterministic build, and
 * the layout.
 */
static bool is_as_before(const struct process *process, const struct object_file *object,
			 uint64_t base)
{
	struct sparse_file view = object_file_view(object);
	struct sparse_file *held GUARDED(view) = &view;
	uint8_t now[PAGE_BYTES];
	size_t size_bytes = view.size_bytes < PAGE_BYTES ? view.size_bytes : PAGE_BYTES;
	struct sym_error *error = process_read_memory(process, base, now, size_bytes);

	if (!error)
		error = sparse_file_need(held, object->path, 0, size_bytes);
	if (!error)
		return !memcmp(now, view.data, size_bytes);
	sym_error_destroy(error);
	return false;
}

/*
 * Opens the image at `base`. Copying it from memory costs all its bytes, so an open one is used
 * again.
 */
static struct sym_error *open_at(const struct group_opening *opening, uint64_t base,
				 struct object_file **ret)
{
	const struct mapped_file *before = opening->group->before;
	const struct process *process = opening->context->process;

	for (size_t i = 0; before && i < before->image_count; i++) {
		struct sym_image *image = before->images[i];

		if (image->load_base == base && is_as_before(process, image->object, base)) {
			*ret = object_file_share(image->object);
			return NULL;
		}
	}
	return memory_image_open_pe(process, base, process->executable, ret);
}

/* *end_ret is written when there is an image at `base`, which lies in the line `header`. */
static struct sym_error *add_memory_assembly(const struct group_opening *opening, size_t header,
					     uint64_t base, uint64_t *end_ret)
{
	const char *executable = opening->context->process->executable;
	struct mapped_file *group = opening->group;
	uint64_t end;
	struct object_file *object AUTO_OBJECT_FILE = NULL;
	char *path AUTO_FREE = NULL;
	struct sym_image *image;
	const char *name;
	struct sym_error *error = open_at(opening, base, &object);

	/* Memory that only looked like an image, or was freed, is ignored. */
	if (error)
		return sym_error_only_no_memory(error);
	end = image_end(object, base);
	name = object_file_assembly_name(object);
	if (!name || !has_code_below(group, header + 1, end))
		return NULL;
	path = embedded_image_path(executable, name, strlen(name));
	if (!path)
		return &sym_error_no_memory;
	error = mapped_file_add(opening, path, object, base, &image);
	for (size_t i = header;
	     !error && i < group->mapping_count && group->mappings[i].start_address < end; i++)
		if (!group->places[i].image)
			mapped_file_give(opening, i, image, true);
	if (!error)
		*end_ret = end;
	return error;
}

/*
 * Images start at multiples of the runtime's allocation granularity (64 KiB), with read-only pages.
 * The kernel joins these with read-only pages of the image below, so a header need not be at the
 * start of a line.
 */
struct sym_error *snapshot_add_memory_assemblies(const struct group_opening *opening)
{
	const struct mapped_file *group = opening->group;
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
	if (error || !opening->group->image_count)
		return error;
	/* The memory belonged to this process only if the process is still the same. */
	error = process_check(opening->context->process);
	if (!error || sym_error_is_no_memory(error))
		return error;
	sym_error_destroy(error);
	mapped_file_forget(opening->group);
	return NULL;
}
