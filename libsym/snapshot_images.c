/* SPDX-License-Identifier: MIT */
#include "libsym/snapshot_images.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/ident.h"
#include "libsym/placement.h"

struct mapped_module {
	struct sym_image *module;
	uint32_t first_mapping;
	uint32_t made_as; /* number under which mappings know it until all are sorted */
};

struct collection {
	struct sym_snapshot *snapshot;
	struct mapped_module *items;
	size_t count;
	size_t capacity;
};

static void collection_deinit(struct collection *collection)
{
	for (size_t i = 0; i < collection->count; i++)
		module_destroy(collection->items[i].module);
	free(collection->items);
}
#define AUTO_COLLECTION __attribute__((cleanup(collection_deinit)))

static struct sym_error *add_module(struct collection *collection, const char *path,
				    struct image *image, struct sym_image **ret)
{
	struct sym_snapshot *snapshot = collection->snapshot;
	struct mapped_module *item;
	struct sym_error *error;

	if (collection->count == collection->capacity) {
		size_t capacity = collection->capacity ? collection->capacity * 2 : 64;
		struct mapped_module *items =
			reallocarray(collection->items, capacity, sizeof(*items));

		if (!items)
			return &sym_error_no_memory;
		collection->items = items;
		collection->capacity = capacity;
	}
	item = &collection->items[collection->count];
	*item = (struct mapped_module){ .first_mapping = UINT32_MAX,
					.made_as = (uint32_t)collection->count };
	error = module_create(path, image, false, &item->module);
	if (error)
		return error;
	collection->count++;
	item->module->neighbour_images = snapshot->images;
	item->module->neighbour_count = snapshot->image_count;
	item->module->relative_map_dirs = (const char *const *)snapshot->relative_map_dirs;
	*ret = item->module;
	return NULL;
}

static void give_mapping(struct collection *collection, uint32_t mapping, uint32_t module,
			 bool placed)
{
	struct mapped_module *item = &collection->items[module];

	collection->snapshot->space->mappings[mapping].image_index = module;
	collection->snapshot->is_placed[mapping] = placed;
	if (mapping < item->first_mapping)
		item->first_mapping = mapping;
}

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

static bool is_no_memory(const struct sym_error *error)
{
	return error && sym_error_code(error) == SYM_ERROR_NO_MEMORY;
}

/* One image without a place in memory has all lines of the file. */
static struct sym_error *add_unplaced(struct collection *collection, const struct mapped_file *file,
				      struct image *image, struct sym_error *trouble)
{
	struct sym_image *module;
	struct sym_error *error = add_module(collection, file->path, image, &module);

	if (error) {
		sym_error_destroy(trouble);
		return error;
	}
	if (trouble)
		module_set_trouble(module, trouble);
	for (size_t i = 0; i < file->mapping_count; i++)
		give_mapping(collection, file->mapping_indexes[i],
			     (uint32_t)(collection->count - 1), false);
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

static struct sym_error *add_placed(struct collection *collection, const struct mapped_file *file,
				    struct image *image, const struct placements *placements)
{
	uint32_t first = (uint32_t)collection->count;

	for (size_t i = 0; i < placements->count; i++) {
		struct sym_image *module;
		struct sym_error *error = add_module(collection, file->path, image, &module);
		struct sym_error *trouble;

		if (error)
			return error;
		module->load_base = placements->items[i].base;
		trouble = ident_check(collection->snapshot->process, image, module->load_base);
		if (!trouble && placements->unexplained_code_lines &&
		    ident_may_have_changed(collection->snapshot->process, image))
			trouble = layout_trouble(file);
		if (trouble)
			module_set_trouble(module, trouble);
	}
	for (size_t i = 0; i < file->mapping_count; i++) {
		uint32_t placement = placements->of_line[i];
		bool placed = placement != PLACEMENT_NONE;

		give_mapping(collection, file->mapping_indexes[i], first + (placed ? placement : 0),
			     placed);
	}
	return NULL;
}

static struct sym_error *add_image(struct collection *collection, const struct mapped_file *file,
				   struct image *image)
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

static struct sym_error *add_file(struct collection *collection, const struct mapped_file *file,
				  struct image **image_ret)
{
	struct sym_error *error = open_file(collection->snapshot, file, image_ret);

	if (is_no_memory(error))
		return error;
	return error ? add_unplaced(collection, file, NULL, error)
		     : add_image(collection, file, *image_ret);
}

static int by_first_mapping(const void *left, const void *right)
{
	const struct mapped_module *a = left, *b = right;

	return a->first_mapping < b->first_mapping ? -1 : a->first_mapping > b->first_mapping;
}

/* Images are numbered by their first mapping; the mappings learn the final numbers. */
static struct sym_error *number_modules(struct collection *collection)
{
	struct sym_snapshot *snapshot = collection->snapshot;
	uint32_t *final AUTO_FREE = calloc(collection->count + 1, sizeof(*final));

	snapshot->modules = calloc(collection->count + 1, sizeof(*snapshot->modules));
	if (!final || !snapshot->modules)
		return &sym_error_no_memory;
	qsort(collection->items, collection->count, sizeof(*collection->items), by_first_mapping);
	for (size_t i = 0; i < collection->count; i++) {
		final[collection->items[i].made_as] = (uint32_t)i;
		snapshot->modules[i] = STEAL(collection->items[i].module);
		snapshot->modules[i]->index = (uint32_t)i;
	}
	snapshot->module_count = collection->count;
	for (size_t i = 0; i < snapshot->space->mapping_count; i++) {
		struct sym_mapping *mapping = &snapshot->space->mappings[i];

		if (mapping->image_index != UINT32_MAX)
			mapping->image_index = final[mapping->image_index];
	}
	return NULL;
}

struct sym_error *snapshot_open_images(struct sym_snapshot *snapshot)
{
	struct collection collection AUTO_COLLECTION = { .snapshot = snapshot };
	const struct address_space *space = snapshot->space;
	struct sym_error *error = NULL;

	snapshot->is_placed = calloc(space->mapping_count + 1, sizeof(*snapshot->is_placed));
	snapshot->images = calloc(space->file_count + 1, sizeof(struct image *));
	if (!snapshot->is_placed || !snapshot->images)
		return &sym_error_no_memory;
	snapshot->image_count = space->file_count;
	for (size_t i = 0; !error && i < space->file_count; i++)
		if (!space->files[i].memory)
			error = add_file(&collection, &space->files[i], &snapshot->images[i]);
	return error ? error : number_modules(&collection);
}
