/* SPDX-License-Identifier: MIT */
#include "libsym/image_collection.h"

#include <stdlib.h>
#include <string.h>

struct mapped_module {
	struct sym_image *module;
	uint32_t first_mapping;
	uint32_t made_as; /* number under which mappings know it until all are sorted */
};

void image_collection_deinit(struct image_collection *collection)
{
	for (size_t i = 0; i < collection->module_count; i++)
		module_destroy(collection->modules[i].module);
	for (size_t i = 0; i < collection->image_count; i++)
		image_close(collection->images[i]);
	free(collection->modules);
	free(collection->images);
	*collection = (struct image_collection){ 0 };
}

struct sym_error *image_collection_keep(struct image_collection *collection, struct image *image)
{
	if (collection->image_count == collection->image_capacity) {
		size_t capacity = collection->image_capacity ? collection->image_capacity * 2 : 64;
		struct image **images =
			reallocarray(collection->images, capacity, sizeof(struct image *));

		if (!images)
			return &sym_error_no_memory;
		collection->images = images;
		collection->image_capacity = capacity;
	}
	collection->images[collection->image_count++] = image;
	return NULL;
}

struct sym_error *image_collection_add(struct image_collection *collection, const char *path,
				       struct image *image, struct sym_image **ret)
{
	struct mapped_module *item;
	struct sym_error *error;

	if (collection->module_count == collection->module_capacity) {
		size_t capacity =
			collection->module_capacity ? collection->module_capacity * 2 : 64;
		struct mapped_module *items =
			reallocarray(collection->modules, capacity, sizeof(*items));

		if (!items)
			return &sym_error_no_memory;
		collection->modules = items;
		collection->module_capacity = capacity;
	}
	item = &collection->modules[collection->module_count];
	*item = (struct mapped_module){ .first_mapping = UINT32_MAX,
					.made_as = (uint32_t)collection->module_count };
	error = module_create(path, image, false, &item->module);
	if (error)
		return error;
	collection->module_count++;
	if (ret)
		*ret = item->module;
	return NULL;
}

struct sym_image *image_collection_module(const struct image_collection *collection, size_t number)
{
	return collection->modules[number].module;
}

void image_collection_give(struct image_collection *collection, uint32_t mapping, uint32_t module,
			   bool placed)
{
	struct mapped_module *item = &collection->modules[module];

	collection->snapshot->space->mappings[mapping].image_index = module;
	collection->snapshot->is_placed[mapping] = placed;
	if (mapping < item->first_mapping)
		item->first_mapping = mapping;
}

struct sym_error *image_collection_place(struct image_collection *collection, const char *path,
					 struct image *image, const struct placements *placements,
					 const uint32_t *lines, size_t line_count)
{
	uint32_t first = (uint32_t)collection->module_count;

	for (size_t i = 0; i < placements->count; i++) {
		struct sym_image *module;
		struct sym_error *error = image_collection_add(collection, path, image, &module);

		if (error)
			return error;
		module->load_base = placements->items[i].base;
	}
	for (size_t i = 0; i < line_count; i++)
		if (placements->of_line[i] != PLACEMENT_NONE)
			image_collection_give(collection, lines[i], first + placements->of_line[i],
					      true);
	return NULL;
}

static int by_first_mapping(const void *left, const void *right)
{
	const struct mapped_module *a = left, *b = right;

	return a->first_mapping < b->first_mapping ? -1 : a->first_mapping > b->first_mapping;
}

/* Images are numbered by their first mapping; the mappings learn the final numbers. */
struct sym_error *image_collection_finish(struct image_collection *collection)
{
	struct sym_snapshot *snapshot = collection->snapshot;
	uint32_t *final AUTO_FREE = calloc(collection->module_count + 1, sizeof(*final));

	snapshot->modules = calloc(collection->module_count + 1, sizeof(*snapshot->modules));
	if (!final || !snapshot->modules)
		return &sym_error_no_memory;
	if (collection->module_count)
		qsort(collection->modules, collection->module_count, sizeof(*collection->modules),
		      by_first_mapping);
	snapshot->images = STEAL(collection->images);
	snapshot->image_count = collection->image_count;
	collection->image_count = 0;
	for (size_t i = 0; i < collection->module_count; i++) {
		struct sym_image *module = STEAL(collection->modules[i].module);

		final[collection->modules[i].made_as] = (uint32_t)i;
		module->index = (uint32_t)i;
		module->neighbour_images = snapshot->images;
		module->neighbour_count = snapshot->image_count;
		module->root_fd = snapshot->process->root_fd;
		module->debug_fetch.fetch = snapshot->fetch;
		module->debug_fetch.context = snapshot->fetch_context;
		module->relative_map_dirs = (const char *const *)snapshot->relative_map_dirs;
		snapshot->modules[i] = module;
	}
	snapshot->module_count = collection->module_count;
	for (size_t i = 0; i < snapshot->space->mapping_count; i++) {
		struct sym_mapping *mapping = &snapshot->space->mappings[i];

		if (mapping->image_index != UINT32_MAX)
			mapping->image_index = final[mapping->image_index];
	}
	return NULL;
}
