/* SPDX-License-Identifier: MIT */
#include "libsym/snapshot_images.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/ident.h"
#include "libsym/image_collection.h"
#include "libsym/memory_image.h"
#include "libsym/snapshot_bundle.h"

enum {
	/* The kernel's own are two pages. */
	LARGEST_VDSO_BYTES = 1 << 20
};

#define AUTO_COLLECTION __attribute__((cleanup(image_collection_deinit)))

static struct sym_error *open_file(const struct sym_snapshot *snapshot,
				   const struct mapped_file *file, struct image **ret)
{
	const struct sym_mapping *line = &snapshot->space->mappings[file->mapping_indexes[0]];
	struct sym_error *error;
	struct stat status;
	int fd AUTO_CLOSE = -1;

	error = process_open_mapped(snapshot->process, line, &fd, &status);
	if (!error)
		error = image_open(fd, file->path, 0, SPARSE_FILE_TO_END, ret);
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
static bool is_worth_a_copy(const struct sym_snapshot *snapshot, const struct mapped_file *file)
{
	size_t length = strlen(file->path);

	for (size_t i = 0; i < file->mapping_count; i++)
		if (snapshot->space->mappings[file->mapping_indexes[i]].protection & SYM_EXECUTE)
			return true;
	return length > 4 && !strcasecmp(file->path + length - 4, ".dll");
}

/* What is in memory of a file that is out of reach. */
static struct sym_error *open_copy(const struct sym_snapshot *snapshot,
				   const struct mapped_file *file, struct image **ret)
{
	int fd AUTO_CLOSE = -1;
	struct sym_error *error;

	error = memory_image_collect(snapshot->process, snapshot->space->mappings,
				     file->mapping_indexes, file->mapping_count, file->path, &fd);
	if (!error)
		error = image_open(fd, file->path, 0, SPARSE_FILE_TO_END, ret);
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
static struct sym_error *add_unplaced(struct image_collection *collection,
				      const struct mapped_file *file, struct image *image,
				      struct sym_error *trouble)
{
	struct sym_image *module;
	struct sym_error *error = image_collection_add(collection, file->path, image, &module);

	if (error) {
		sym_error_destroy(trouble);
		return error;
	}
	if (trouble)
		module_set_trouble(module, trouble);
	for (size_t i = 0; i < file->mapping_count; i++)
		image_collection_give(collection, file->mapping_indexes[i],
				      (uint32_t)(collection->module_count - 1), false);
	return NULL;
}

/* The file's code is mapped in a way that its own headers do not explain: it is another file, or
 * lies. */
static struct sym_error *layout_trouble(const struct mapped_file *file)
{
	return sym_error_create_path(SYM_ERROR_STALE, file->path, SYM_OFFSET_UNKNOWN,
				     "its layout is not the one that is mapped: the file was "
				     "changed after it was mapped, or is damaged");
}

/* Each placement is checked by itself: one of them may lie in memory that was changed. */
static void check_placed(struct image_collection *collection, const struct mapped_file *file,
			 struct image *image, uint32_t first, bool unexplained)
{
	const struct process *process = collection->snapshot->process;

	for (size_t i = first; i < collection->module_count; i++) {
		struct sym_image *module = image_collection_module(collection, i);
		struct sym_error *trouble = ident_check(process, image, module->load_base);

		if (!trouble && unexplained && ident_may_have_changed(process, image))
			trouble = layout_trouble(file);
		if (trouble)
			module_set_trouble(module, trouble);
	}
}

static struct sym_error *add_placed(struct image_collection *collection,
				    const struct mapped_file *file, struct image *image,
				    const struct placements *placements)
{
	uint32_t first = (uint32_t)collection->module_count;
	bool has_bundle = false;
	struct sym_error *error =
		image_collection_place(collection, file->path, image, placements,
				       file->mapping_indexes, file->mapping_count);

	for (size_t i = 0; !error && i < file->mapping_count; i++)
		if (placements->of_line[i] == PLACEMENT_NONE)
			image_collection_give(collection, file->mapping_indexes[i], first, false);
	if (error)
		return error;
	check_placed(collection, file, image, first, false);
	/* Code that the host's own headers do not explain may be that of assemblies inside it. */
	if (placements->unexplained_code_lines && image->kind == SYM_IMAGE_ELF)
		error = snapshot_add_bundle(collection, file, image, first, &has_bundle);
	if (!error && placements->unexplained_code_lines && !has_bundle)
		check_placed(collection, file, image, first, true);
	return error;
}

static struct sym_error *add_image(struct image_collection *collection,
				   const struct mapped_file *file, struct image *image)
{
	struct placements placements;
	struct sym_error *error, *trouble = NULL;

	if (image->kind == SYM_IMAGE_UNKNOWN)
		return add_unplaced(collection, file, image, NULL);
	error = placement_find(image, 0, collection->snapshot->space->mappings,
			       file->mapping_indexes, file->mapping_count, &placements);
	if (error)
		return error;
	if (!placements.count && placements.unexplained_code_lines)
		trouble = layout_trouble(file);
	error = placements.count ? add_placed(collection, file, image, &placements)
				 : add_unplaced(collection, file, image, trouble);
	placements_deinit(&placements);
	return error;
}

/* The kernel maps an ELF file of its own into every process. */
static struct sym_error *add_vdso(struct image_collection *collection, uint32_t mapping)
{
	struct sym_snapshot *snapshot = collection->snapshot;
	const struct sym_mapping *line = &snapshot->space->mappings[mapping];
	struct mapped_file file = { .path = line->path,
				    .mapping_indexes = &mapping,
				    .mapping_count = 1 };
	struct image *image AUTO_IMAGE = NULL;
	struct sym_error *error;

	if (line->end_address - line->start_address > LARGEST_VDSO_BYTES)
		return NULL;
	error = memory_image_open(snapshot->process, line->start_address,
				  (size_t)(line->end_address - line->start_address), line->path,
				  &image);
	/* What cannot be read stays without an image. */
	if (error && !is_no_memory(error))
		sym_error_destroy(STEAL(error));
	if (error || !image)
		return error;
	error = image_collection_keep(collection, image);
	return error ? error : add_image(collection, &file, STEAL(image));
}

static struct sym_error *add_file(struct image_collection *collection,
				  const struct mapped_file *file)
{
	struct image *image AUTO_IMAGE = NULL;
	struct sym_error *error = open_file(collection->snapshot, file, &image);

	if (error && is_out_of_reach(error) && is_worth_a_copy(collection->snapshot, file)) {
		struct sym_error *other = open_copy(collection->snapshot, file, &image);

		/* The first reason is the one that a person can do something about. */
		if (!other)
			sym_error_destroy(STEAL(error));
		sym_error_destroy(other);
	}
	if (is_no_memory(error))
		return error;
	if (error)
		return add_unplaced(collection, file, NULL, error);
	error = image_collection_keep(collection, image);
	return error ? error : add_image(collection, file, STEAL(image));
}

struct sym_error *snapshot_open_images(struct sym_snapshot *snapshot)
{
	struct image_collection collection AUTO_COLLECTION = { .snapshot = snapshot };
	const struct address_space *space = snapshot->space;
	struct sym_error *error = NULL;

	snapshot->is_placed = calloc(space->mapping_count + 1, sizeof(*snapshot->is_placed));
	if (!snapshot->is_placed)
		return &sym_error_no_memory;
	for (size_t i = 0; !error && i < space->file_count; i++)
		if (!space->files[i].memory)
			error = add_file(&collection, &space->files[i]);
	for (size_t i = 0; !error && i < space->mapping_count; i++)
		if (!strcmp(space->mappings[i].path, "[vdso]"))
			error = add_vdso(&collection, (uint32_t)i);
	if (!error && snapshot->runtime.shape && !strcmp(snapshot->runtime.shape, "single-file"))
		error = snapshot_add_memory_assemblies(&collection);
	return error ? error : image_collection_finish(&collection);
}
