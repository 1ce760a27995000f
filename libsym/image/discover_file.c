/* SPDX-License-Identifier: MIT */
/*
 * How a mapped file becomes images: snapshot_open_group().
 *
 *   open       by path, through map_files, or rebuilt from memory (memory_image.h)
 *   check      is it still the mapped file (mapped_file_check.h)
 *   place      one image for each base (placement.h), one without a base if the file is mapped flat
 *   descend    into a bundle or an archive, if its own headers do not explain all code
 *
 * A step that fails gives an image with a problem, never an error, unless memory ran out.
 */
#include "libsym/image/discover_file.h"

#include <string.h>

#include "libsym/image/discover_archive.h"
#include "libsym/image/discover_bundle.h"
#include "libsym/image/hugepage_text.h"
#include "libsym/image/mapped_file_check.h"
#include "libsym/process/memory_image.h"

enum {
	/* the kernel's has two pages */
	LARGEST_VDSO_BYTES = 1 << 20
};

/* The object that was opened for the earlier lines of the file, if the file is the same. */
static struct object_file *discover_file_reopen(const struct mapped_file *group)
{
	const struct mapped_file *before = group->before;

	return before && mapped_file_is_open(before) && before->host && !before->host->is_copy &&
			       sparse_file_is_as_opened(&before->host->file)
		       ? object_file_share(before->host)
		       : NULL;
}

static struct sym_error *open_mapped(const struct group_opening *opening, uint64_t size_bytes,
				     struct object_file **ret)
{
	const struct mapped_file *group = opening->group;
	struct stat status;
	int fd AUTO_CLOSE = -1;
	struct sym_error *error =
		process_open_mapped(opening->context->process, &group->mappings[0], &fd, &status);

	if (!error)
		error = object_file_open(
			budget_account_of(opening->context->process->budget, status.st_uid), fd,
			group->path, 0, size_bytes, ret);
	if (!error)
		steal_fd(&fd);
	return error;
}

static struct sym_error *open_file(const struct group_opening *opening, struct object_file **ret)
{
	*ret = discover_file_reopen(opening->group);
	return *ret ? NULL : open_mapped(opening, SPARSE_FILE_TO_END, ret);
}

/* True when the mapped file can be opened in no way, but is of a kind that contains images. */
static bool is_out_of_reach(const struct sym_error *error)
{
	switch (sym_error_code(error)) {
	case SYM_ERROR_STALE:
	case SYM_ERROR_PERMISSION:
	case SYM_ERROR_NOT_FOUND:
	case SYM_ERROR_IO:
		return true;
	default:
		return false;
	}
}

/* Code; or an assembly, whose metadata names jitted code. */
static bool is_worth_a_copy(const struct mapped_file *group)
{
	size_t length = strlen(group->path);

	for (size_t i = 0; i < group->mapping_count; i++)
		if (group->mappings[i].protection & SYM_EXECUTE)
			return true;
	return length > 4 && !strcasecmp(group->path + length - 4, ".dll");
}

/* Copies from memory a file that cannot be opened. */
static struct sym_error *open_copy(const struct group_opening *opening, struct object_file **ret)
{
	const struct mapped_file *group = opening->group;
	const struct process *process = opening->context->process;
	int fd AUTO_CLOSE = -1;
	uint64_t memory_bytes = 0;
	struct sym_error *error;

	error = memory_image_collect(process, group->mappings, group->lines, group->mapping_count,
				     group->path, &fd, &memory_bytes);
	/* The memory belonged to this process only if the process is still the same. */
	if (!error)
		error = process_check(process);
	if (!error)
		error = object_file_open(process_account(process), fd, group->path, 0,
					 SPARSE_FILE_TO_END, ret);
	if (error) {
		budget_release(process_account(process), memory_bytes);
		return error;
	}
	steal_fd(&fd);
	(*ret)->memory_bytes = memory_bytes;
	(*ret)->is_copy = true;
	/* An empty key: relocated words differ from those of the file. */
	(*ret)->keyed = true;
	return NULL;
}

/* An image without an address gets all lines of the file. */
static struct sym_error *add_unplaced(const struct group_opening *opening,
				      struct object_file *object, struct sym_error *trouble)
{
	struct mapped_file *group = opening->group;
	struct sym_image *image;
	struct sym_error *error = mapped_file_add(opening, group->path, object, UINT64_MAX, &image);

	if (error) {
		sym_error_destroy(trouble);
		return error;
	}
	if (trouble)
		image_set_trouble(image, trouble);
	for (size_t i = 0; i < group->mapping_count; i++)
		mapped_file_give(opening, i, image, false);
	return NULL;
}

/* The headers of the file do not explain how its code is mapped: it is another file, or corrupt. */
static struct sym_error *layout_trouble(const struct mapped_file *group)
{
	return sym_error_create_path(SYM_ERROR_STALE, group->path, SYM_OFFSET_UNKNOWN,
				     "its layout is not the one that is mapped: the file was "
				     "changed after it was mapped, or is damaged");
}

/* Each placement is checked separately: one of them may be in memory that was changed. */
static void check_placed(const struct group_opening *opening, struct object_file *object,
			 bool unexplained)
{
	const struct process *process = opening->context->process;
	struct mapped_file *group = opening->group;

	for (size_t i = 0; i < group->image_count; i++) {
		struct sym_image *image = group->images[i];
		struct sym_error *trouble;

		if (image->object != object)
			continue;
		trouble = mapped_file_check(process, object, image->load_base, group);
		if (!trouble && unexplained && mapped_file_check_may_have_changed(process, object))
			trouble = layout_trouble(group);
		group->was_short |= sym_error_is_shortage(trouble);
		if (trouble)
			image_set_trouble(image, trouble);
	}
}

static struct sym_error *add_placed(const struct group_opening *opening, struct object_file *object,
				    const struct placements *placements)
{
	struct mapped_file *group = opening->group;
	bool has_bundle = false;
	struct sym_error *error = mapped_file_place(opening, group->path, object, placements,
						    group->lines, mapped_file_line_count(group));

	if (error)
		return error;
	for (size_t i = 0; i < group->mapping_count; i++)
		if (placements->of_line[i] == PLACEMENT_NONE)
			mapped_file_give(opening, i, group->images[0], false);
	check_placed(opening, object, false);
	/* Code that the host's own headers do not explain may belong to assemblies inside it. */
	if (placements->unexplained_code_lines && object->kind == SYM_IMAGE_ELF)
		error = snapshot_add_bundle(opening, object, &has_bundle);
	if (!error && placements->unexplained_code_lines && !has_bundle)
		check_placed(opening, object, true);
	return error;
}

/*
 * True when all code of the file is in a mapping that contains the whole file from its first byte
 * on. Readers of a file map it so. Then its headers are mapped too, and can be compared.
 */
static bool is_flat(const struct mapped_file *group, const struct object_file *object)
{
	uint64_t end = 0;

	for (size_t i = 0; i < object->segment_count; i++) {
		const struct object_segment *segment = &object->segments[i];

		if (segment->executable && segment->offset + segment->size_bytes > end)
			end = segment->offset + segment->size_bytes;
	}
	for (size_t i = 0; i < group->mapping_count; i++) {
		const struct sym_mapping *line = &group->mappings[i];

		if (line->protection & SYM_EXECUTE &&
		    (line->offset || line->end_address - line->start_address < end))
			return false;
	}
	return object->kind == SYM_IMAGE_ELF && end;
}

static struct sym_error *add_image(const struct group_opening *opening, struct object_file *object)
{
	struct mapped_file *group = opening->group;
	const struct sym_mapping *mappings = group->mappings;
	struct sym_mapping *shown AUTO_FREE = NULL;
	struct placements placements;
	struct sym_error *error, *trouble = NULL;

	if (object->kind == SYM_IMAGE_UNKNOWN) {
		error = add_unplaced(opening, object, NULL);
		return error ? error : snapshot_add_archive(opening, object);
	}
	if (group->hugepage_run_count) {
		shown = hugepage_text_show(opening->context->process, group, object);
		if (!shown)
			return &sym_error_no_memory;
		mappings = shown;
	}
	error = placement_find(object, 0, mappings, group->lines, mapped_file_line_count(group),
			       &placements);
	if (error)
		return error;
	if (!placements.count && placements.unexplained_code_lines)
		trouble = is_flat(group, object) ? mapped_file_check(opening->context->process,
								     object, UINT64_MAX, group)
						 : layout_trouble(group);
	error = placements.count ? add_placed(opening, object, &placements)
				 : add_unplaced(opening, object, trouble);
	placements_deinit(&placements);
	return error;
}

/* The vDSO, which the kernel maps into every process. */
static struct sym_error *open_vdso(const struct group_opening *opening)
{
	const struct process *process = opening->context->process;
	struct mapped_file *group = opening->group;
	const struct sym_mapping *line = &group->mappings[0];
	struct sym_error *error;

	if (line->end_address - line->start_address > LARGEST_VDSO_BYTES)
		return NULL;
	error = memory_image_open(process, line->start_address,
				  (size_t)(line->end_address - line->start_address), line->path,
				  &group->host);
	if (!error)
		error = process_check(process);
	group->was_short = sym_error_is_shortage(error);
	if (error && !sym_error_is_no_memory(error)) {
		object_file_close(STEAL(group->host));
		if (sym_error_code(error) == SYM_ERROR_IO)
			return add_unplaced(opening, NULL, error);
		/* Unavailable memory (a core file has none) gives no image. */
		sym_error_destroy(error);
		return NULL;
	}
	return error ? error : add_image(opening, group->host);
}

/*
 * Checks that the file was not written to since its mappings were read: a write changes what is
 * mapped.
 * Most file systems date changes by the last tick (1 to 10 ms), so a change within that tick can be
 * missed.
 */
static void check_time(const struct mapped_file *group)
{
	if (!group->host || group->host->is_copy || group->host->file.changed_ns <= group->seen_ns)
		return;
	for (size_t i = 0; i < group->image_count; i++)
		image_set_trouble(group->images[i],
				  sym_error_create_path(SYM_ERROR_STALE, group->path,
							SYM_OFFSET_UNKNOWN,
							"the file was changed after its process "
							"was looked at"));
}

/*
 * A file that is too large for an image may be an archive. Only its directory and its members are
 * read.
 * Takes ownership of `limit`, the error about its size.
 */
static struct sym_error *add_large(const struct group_opening *opening, struct sym_error *limit)
{
	struct mapped_file *group = opening->group;
	struct sym_error *error = open_mapped(opening, 0, &group->host);

	if (!error) {
		group->host->keyed = true; /* no content key */
		error = add_image(opening, group->host);
	}
	if (error && !sym_error_is_no_memory(error)) {
		sym_error_destroy(error);
		return add_unplaced(opening, NULL, limit);
	}
	if (!error && !group->part_count)
		image_set_trouble(group->images[0], limit);
	else
		sym_error_destroy(limit);
	return error;
}

static struct sym_error *open_mapped_file(const struct group_opening *opening)
{
	struct mapped_file *group = opening->group;
	struct sym_error *error = open_file(opening, &group->host);

	group->was_short = sym_error_is_shortage(error);
	if (error && is_out_of_reach(error) && is_worth_a_copy(group)) {
		struct sym_error *other = open_copy(opening, &group->host);

		/* The first reason stays: users can act on it. */
		if (!other) {
			object_file_record_problem(group->host, error);
			sym_error_destroy(STEAL(error));
		}
		sym_error_destroy(other);
	}
	if (sym_error_is_no_memory(error))
		return error;
	if (error && sym_error_code(error) == SYM_ERROR_LIMIT)
		error = add_large(opening, error);
	else
		error = error ? add_unplaced(opening, NULL, error)
			      : add_image(opening, group->host);
	if (!error)
		check_time(group);
	return error;
}

struct sym_error *snapshot_open_group(const struct group_opening *opening)
{
	switch (opening->group->kind) {
	case MAPPED_FILE_FILE:
		return open_mapped_file(opening);
	case MAPPED_FILE_VDSO:
		return open_vdso(opening);
	case MAPPED_FILE_MEMORY:
		break;
	}
	return snapshot_add_memory_assemblies(opening);
}
