/* SPDX-License-Identifier: MIT */
#include "libsym/image_group.h"

#include <stdlib.h>
#include <string.h>

void image_group_forget(struct image_group *group)
{
	for (size_t i = 0; i < group->module_count; i++)
		module_destroy(group->modules[i]);
	group->module_count = 0;
	image_close(STEAL(group->host));
	free(STEAL(group->parts));
	group->part_count = 0;
	memset(group->places, 0, image_group_line_count(group) * sizeof(*group->places));
}

void image_group_release(struct image_group *group)
{
	if (!group || atomic_fetch_sub_explicit(&group->users, 1, memory_order_acq_rel))
		return;
	if (group->places)
		image_group_forget(group);
	image_group_release(group->before);
	pthread_mutex_destroy(&group->lock);
	free(group->modules);
	free(group->places);
	free(group->lines);
	free(group->mappings);
	free(group->owned_path);
	free(group);
}

struct image_group *image_group_share(struct image_group *group)
{
	atomic_fetch_add_explicit(&group->users, 1, memory_order_relaxed);
	return group;
}

struct sym_error *image_group_create(enum image_group_kind kind, const struct sym_mapping *mappings,
				     const uint32_t *indexes, size_t count, int64_t seen_ns,
				     struct image_group **ret)
{
	struct image_group *group AUTO_IMAGE_GROUP = calloc(1, sizeof(*group));

	if (!group)
		return &sym_error_no_memory;
	pthread_mutex_init(&group->lock, NULL);
	group->kind = kind;
	group->seen_ns = seen_ns;
	group->owned_path = strdup(count ? mappings[indexes[0]].path : "");
	group->mappings = calloc(count + 1, sizeof(*group->mappings));
	group->lines = calloc(count + 1, sizeof(*group->lines));
	group->places = calloc(count + 1, sizeof(*group->places));
	if (!group->owned_path || !group->mappings || !group->lines || !group->places)
		return &sym_error_no_memory;
	group->path = group->owned_path;
	for (size_t i = 0; i < count; i++) {
		/* Memory that took the place of the file's. */
		if (kind == IMAGE_GROUP_FILE && strcmp(mappings[indexes[i]].path, group->path) != 0)
			group->remapped_count++;
		group->lines[i] = (uint32_t)i;
		group->mappings[i] = mappings[indexes[i]];
		group->mappings[i].path = group->path;
		group->mappings[i].image_index = UINT32_MAX;
	}
	group->mapping_count = count - group->remapped_count;
	*ret = STEAL(group);
	return NULL;
}

/* One that was never opened hands on what there was before it: names of that are in use. */
void image_group_follow(struct image_group *group, struct image_group *old)
{
	pthread_mutex_lock(&old->lock);
	if (image_group_is_open(old))
		group->before = image_group_share(old);
	else if (old->before)
		group->before = image_group_share(old->before);
	pthread_mutex_unlock(&old->lock);
}

static bool is_same_line(const struct sym_mapping *a, const struct sym_mapping *b)
{
	return a->start_address == b->start_address && a->end_address == b->end_address &&
	       a->offset == b->offset && a->inode == b->inode &&
	       a->device_major == b->device_major && a->device_minor == b->device_minor &&
	       a->protection == b->protection && a->deleted == b->deleted;
}

bool image_group_has_lines(const struct image_group *group, const struct sym_mapping *mappings,
			   const uint32_t *indexes, size_t count)
{
	if (image_group_line_count(group) != count ||
	    (count && strcmp(group->path, mappings[indexes[0]].path) != 0))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_same_line(&group->mappings[i], &mappings[indexes[i]]))
			return false;
	return true;
}

bool image_group_is_open(const struct image_group *group)
{
	return atomic_load_explicit(&((struct image_group *)group)->opened, memory_order_acquire);
}

static struct sym_error *open_locked(struct image_group *group,
				     const struct image_group_context *context,
				     struct sym_error *(*open)(const struct group_opening *))
{
	const struct group_opening opening = { group, context };
	struct sym_error *error = open(&opening);

	if (error) {
		image_group_forget(group);
		return error;
	}
	image_group_release(STEAL(group->before));
	atomic_store_explicit(&group->opened, true, memory_order_release);
	return NULL;
}

struct sym_error *image_group_open(struct image_group *group,
				   const struct image_group_context *context,
				   struct sym_error *(*open)(const struct group_opening *))
{
	struct sym_error *error = NULL;

	if (image_group_is_open(group))
		return NULL;
	pthread_mutex_lock(&group->lock);
	if (!image_group_is_open(group))
		error = open_locked(group, context, open);
	pthread_mutex_unlock(&group->lock);
	return error;
}

/* Names of it are known already, and its trouble may have been of the old lines. */
static struct sym_image *find_before(const struct image_group *group, const char *path,
				     const struct image *image, uint64_t load_base)
{
	const struct image_group *before = group->before;

	for (size_t i = 0; image && before && i < before->module_count; i++) {
		struct sym_image *module = before->modules[i];

		if (module->image == image && module->load_base == load_base &&
		    !module_trouble(module) && !module_was_short(module) &&
		    !strcmp(module->path, path))
			return module_share(module);
	}
	return NULL;
}

static struct sym_error *make_room(struct image_group *group)
{
	size_t capacity = group->module_capacity ? group->module_capacity * 2 : 1;
	struct sym_image **modules;

	if (group->module_count < group->module_capacity)
		return NULL;
	modules = reallocarray(group->modules, capacity, sizeof(struct sym_image *));
	if (!modules)
		return &sym_error_no_memory;
	group->modules = modules;
	group->module_capacity = capacity;
	return NULL;
}

struct sym_error *image_group_add(const struct group_opening *opening, const char *path,
				  struct image *image, uint64_t load_base, struct sym_image **ret)
{
	const struct image_group_context *context = opening->context;
	struct image_group *group = opening->group;
	struct sym_image *module AUTO_MODULE = find_before(group, path, image, load_base);
	struct sym_error *error = make_room(group);

	if (!error && !module) {
		error = module_create(path, image, &module);
		if (!error) {
			module->load_base = load_base;
			module->company = context->company;
			module->roots.fd = context->process->root_fd;
			module->roots.dirs = context->debug_dirs;
			module->relative_map_dirs = context->relative_map_dirs;
			module->debug_fetch.fetch = context->fetch;
			module->debug_fetch.context = context->fetch_context;
		}
	}
	if (error)
		return error;
	*ret = module;
	group->modules[group->module_count++] = STEAL(module);
	return NULL;
}

void image_group_give(const struct group_opening *opening, size_t line, struct sym_image *module,
		      bool placed)
{
	opening->group->places[line] = (struct image_place){ .module = module, .placed = placed };
}

const struct image_part *image_group_part_at(const struct image_group *group, uint64_t offset)
{
	size_t low = 0, high = group->part_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (group->parts[middle].start_offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low && offset < group->parts[low - 1].end_offset ? &group->parts[low - 1] : NULL;
}

struct sym_error *image_group_place(const struct group_opening *opening, const char *path,
				    struct image *image, const struct placements *placements,
				    const uint32_t *lines, size_t line_count)
{
	for (size_t i = 0; i < placements->count; i++) {
		struct sym_image *module;
		struct sym_error *error =
			image_group_add(opening, path, image, placements->items[i].base, &module);

		if (error)
			return error;
		for (size_t j = 0; j < line_count; j++)
			if (placements->of_line[j] == i)
				image_group_give(opening, lines[j], module, true);
	}
	return NULL;
}
