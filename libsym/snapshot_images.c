/* SPDX-License-Identifier: MIT */
#include "libsym/snapshot_images.h"

#include <string.h>

#include "libsym/ident.h"
#include "libsym/memory_image.h"
#include "libsym/remapped_code.h"
#include "libsym/snapshot_archive.h"
#include "libsym/snapshot_bundle.h"

enum {
	/* The kernel's own are two pages. */
	LARGEST_VDSO_BYTES = 1 << 20
};

/* The file as it was opened for the lines that there were before, if it is that still. */
static struct image *reopen(const struct image_group *group)
{
	const struct image_group *before = group->before;

	return before && image_group_is_open(before) && before->host && !before->host->is_copy &&
			       sparse_file_is_as_opened(&before->host->file)
		       ? image_share(before->host)
		       : NULL;
}

static struct sym_error *open_file(const struct group_opening *opening, struct image **ret)
{
	const struct image_group *group = opening->group;
	struct sym_error *error;
	struct stat status;
	int fd AUTO_CLOSE = -1;

	*ret = reopen(group);
	if (*ret)
		return NULL;
	error = process_open_mapped(opening->context->process, &group->mappings[0], &fd, &status);
	if (!error)
		error = image_open(fd, group->path, 0, SPARSE_FILE_TO_END, ret);
	if (!error)
		steal_fd(&fd);
	return error;
}

/* No way to the file that is mapped, though it is one of those that images are in. */
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

/* Code, or an assembly: one without precompiled code still tells the names of what is jitted. */
static bool is_worth_a_copy(const struct image_group *group)
{
	size_t length = strlen(group->path);

	for (size_t i = 0; i < group->mapping_count; i++)
		if (group->mappings[i].protection & SYM_EXECUTE)
			return true;
	return length > 4 && !strcasecmp(group->path + length - 4, ".dll");
}

/* What is in memory of a file that is out of reach. */
static struct sym_error *open_copy(const struct group_opening *opening, struct image **ret)
{
	const struct image_group *group = opening->group;
	const struct process *process = opening->context->process;
	int fd AUTO_CLOSE = -1;
	struct sym_error *error;

	error = memory_image_collect(process, group->mappings, group->lines, group->mapping_count,
				     group->path, &fd);
	/* What was read is of this process only if it still is this process. */
	if (!error)
		error = process_check(process);
	if (!error)
		error = image_open(fd, group->path, 0, SPARSE_FILE_TO_END, ret);
	if (error)
		return error;
	steal_fd(&fd);
	(*ret)->is_copy = true;
	/* "" is "not to be had": relocated words are not those of the file. */
	(*ret)->keyed = true;
	return NULL;
}

static bool is_no_memory(const struct sym_error *error)
{
	return error && sym_error_code(error) == SYM_ERROR_NO_MEMORY;
}

/* One image without a place in memory has all lines of the file. */
static struct sym_error *add_unplaced(const struct group_opening *opening, struct image *image,
				      struct sym_error *trouble)
{
	struct image_group *group = opening->group;
	struct sym_image *module;
	struct sym_error *error = image_group_add(opening, group->path, image, UINT64_MAX, &module);

	if (error) {
		sym_error_destroy(trouble);
		return error;
	}
	if (trouble)
		module_set_trouble(module, trouble);
	for (size_t i = 0; i < group->mapping_count; i++)
		image_group_give(opening, i, module, false);
	return NULL;
}

/* The file's code is mapped in a way that its own headers do not explain: it is another file, or
 * lies. */
static struct sym_error *layout_trouble(const struct image_group *group)
{
	return sym_error_create_path(SYM_ERROR_STALE, group->path, SYM_OFFSET_UNKNOWN,
				     "its layout is not the one that is mapped: the file was "
				     "changed after it was mapped, or is damaged");
}

/* Each placement is checked by itself: one of them may lie in memory that was changed. */
static void check_placed(const struct group_opening *opening, struct image *image, bool unexplained)
{
	const struct process *process = opening->context->process;
	struct image_group *group = opening->group;

	for (size_t i = 0; i < group->module_count; i++) {
		struct sym_image *module = group->modules[i];
		struct sym_error *trouble;

		if (module->image != image)
			continue;
		trouble = ident_check(process, image, module->load_base, group);
		if (!trouble && unexplained && ident_may_have_changed(process, image))
			trouble = layout_trouble(group);
		group->was_short |= sym_error_is_shortage(trouble);
		if (trouble)
			module_set_trouble(module, trouble);
	}
}

static struct sym_error *add_placed(const struct group_opening *opening, struct image *image,
				    const struct placements *placements)
{
	struct image_group *group = opening->group;
	bool has_bundle = false;
	struct sym_error *error = image_group_place(opening, group->path, image, placements,
						    group->lines, image_group_line_count(group));

	if (error)
		return error;
	for (size_t i = 0; i < group->mapping_count; i++)
		if (placements->of_line[i] == PLACEMENT_NONE)
			image_group_give(opening, i, group->modules[0], false);
	check_placed(opening, image, false);
	/* Code that the host's own headers do not explain may be that of assemblies inside it. */
	if (placements->unexplained_code_lines && image->kind == SYM_IMAGE_ELF)
		error = snapshot_add_bundle(opening, image, &has_bundle);
	if (!error && placements->unexplained_code_lines && !has_bundle)
		check_placed(opening, image, true);
	return error;
}

/*
 * Is all code of the file in a mapping that shows it as it lies there, from its first byte on? So
 * map those who look into it themselves; the headers that say where it is are there to be compared.
 */
static bool is_flat(const struct image_group *group, const struct image *image)
{
	uint64_t end = 0;

	for (size_t i = 0; i < image->segment_count; i++) {
		const struct image_segment *segment = &image->segments[i];

		if (segment->executable && segment->offset + segment->size_bytes > end)
			end = segment->offset + segment->size_bytes;
	}
	for (size_t i = 0; i < group->mapping_count; i++) {
		const struct sym_mapping *line = &group->mappings[i];

		if (line->protection & SYM_EXECUTE &&
		    (line->offset || line->end_address - line->start_address < end))
			return false;
	}
	return image->kind == SYM_IMAGE_ELF && end;
}

static struct sym_error *add_image(const struct group_opening *opening, struct image *image)
{
	struct image_group *group = opening->group;
	const struct sym_mapping *mappings = group->mappings;
	struct sym_mapping *shown AUTO_FREE = NULL;
	struct placements placements;
	struct sym_error *error, *trouble = NULL;

	if (image->kind == SYM_IMAGE_UNKNOWN) {
		error = add_unplaced(opening, image, NULL);
		return error ? error : snapshot_add_archive(opening, image);
	}
	if (group->remapped_count) {
		shown = remapped_code_show(opening->context->process, group, image);
		if (!shown)
			return &sym_error_no_memory;
		mappings = shown;
	}
	error = placement_find(image, 0, mappings, group->lines, image_group_line_count(group),
			       &placements);
	if (error)
		return error;
	if (!placements.count && placements.unexplained_code_lines)
		trouble = is_flat(group, image)
				  ? ident_check(opening->context->process, image, UINT64_MAX, group)
				  : layout_trouble(group);
	error = placements.count ? add_placed(opening, image, &placements)
				 : add_unplaced(opening, image, trouble);
	placements_deinit(&placements);
	return error;
}

/* The kernel maps an ELF file of its own into every process. */
static struct sym_error *open_vdso(const struct group_opening *opening)
{
	const struct process *process = opening->context->process;
	struct image_group *group = opening->group;
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
	if (error && !is_no_memory(error)) {
		image_close(STEAL(group->host));
		if (sym_error_code(error) == SYM_ERROR_IO)
			return add_unplaced(opening, NULL, error);
		/* What is not to be had (a core file has none) stays without an image. */
		sym_error_destroy(error);
		return NULL;
	}
	return error ? error : add_image(opening, group->host);
}

/*
 * Whoever writes to a file that is mapped changes what is mapped; nobody can tell any more what it
 * was when the mappings were seen. File systems date most changes by their last tick (1 to 10 ms),
 * so a change in the very tick of that may stay hidden.
 */
static void check_time(const struct image_group *group)
{
	if (!group->host || group->host->is_copy || group->host->file.changed_ns <= group->seen_ns)
		return;
	for (size_t i = 0; i < group->module_count; i++)
		module_set_trouble(group->modules[i],
				   sym_error_create_path(SYM_ERROR_STALE, group->path,
							 SYM_OFFSET_UNKNOWN,
							 "the file was changed after its process "
							 "was looked at"));
}

/*
 * A file that is too large to be an image may be an archive: of that no more is read than its
 * directory, and the members. Takes `limit`, which says that it is too large, over.
 */
static struct sym_error *add_large(const struct group_opening *opening, struct sym_error *limit)
{
	struct image_group *group = opening->group;
	struct stat status;
	int fd AUTO_CLOSE = -1;
	struct sym_error *error;

	error = process_open_mapped(opening->context->process, &group->mappings[0], &fd, &status);
	if (!error)
		error = image_open(fd, group->path, 0, 0, &group->host);
	if (!error) {
		steal_fd(&fd);
		group->host->keyed = true; /* "not to be had" */
		error = add_image(opening, group->host);
	}
	if (error && !is_no_memory(error)) {
		sym_error_destroy(error);
		return add_unplaced(opening, NULL, limit);
	}
	if (!error && !group->part_count)
		module_set_trouble(group->modules[0], limit);
	else
		sym_error_destroy(limit);
	return error;
}

static struct sym_error *open_mapped_file(const struct group_opening *opening)
{
	struct image_group *group = opening->group;
	struct sym_error *error = open_file(opening, &group->host);

	group->was_short = sym_error_is_shortage(error);
	if (error && is_out_of_reach(error) && is_worth_a_copy(group)) {
		struct sym_error *other = open_copy(opening, &group->host);

		/* The first reason is the one that a person can do something about. */
		if (!other) {
			image_note_trouble(group->host, error);
			sym_error_destroy(STEAL(error));
		}
		sym_error_destroy(other);
	}
	if (is_no_memory(error))
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
	case IMAGE_GROUP_FILE:
		return open_mapped_file(opening);
	case IMAGE_GROUP_VDSO:
		return open_vdso(opening);
	case IMAGE_GROUP_MEMORY:
		break;
	}
	return snapshot_add_memory_assemblies(opening);
}
