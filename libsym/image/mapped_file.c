/* SPDX-License-Identifier: MIT */
/*
 * The life of a group.
 *
 *   created    mapped_file_create(): copies its lines; nothing is open
 *   followed   mapped_file_follow(): an earlier group of the same file passes on its images
 *   opened     mapped_file_open(): once, under its lock, by the function of discover_file.h
 *   shared     by snapshots in which the lines are the same
 *   released   by the last snapshot
 *
 * Opening fills `places`, `images` and `parts`. Readers use them without a lock after
 * mapped_file_is_open().
 */
#include "libsym/image/mapped_file.h"
#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"

#include <stdlib.h>
#include <string.h>

void mapped_file_forget(struct mapped_file *group)
{
	for (size_t i = 0; i < group->image_count; i++)
		image_destroy(group->images[i]);
	group->image_count = 0;
	object_file_close(STEAL(group->host));
	free(STEAL(group->parts));
	group->part_count = 0;
	memset(group->places, 0, mapped_file_line_count(group) * sizeof(*group->places));
}

void mapped_file_release(struct mapped_file *group)
{
	if (!group || atomic_fetch_sub_explicit(&group->users, 1, memory_order_acq_rel))
		return;
	if (group->places)
		mapped_file_forget(group);
	mapped_file_release(group->before);
	pthread_mutex_destroy(&group->lock);
	free(group->images);
	free(group->places);
	free(group->lines);
	free(group->mappings);
	free(group->owned_path);
	free(group);
}

struct mapped_file *mapped_file_share(struct mapped_file *group)
{
	atomic_fetch_add_explicit(&group->users, 1, memory_order_relaxed);
	return group;
}

struct sym_error *mapped_file_create(enum mapped_file_kind kind, const struct sym_mapping *mappings,
				     const uint32_t *indexes, size_t count, int64_t seen_ns,
				     struct mapped_file **ret)
{
	struct mapped_file *group AUTO_MAPPED_FILE = calloc(1, sizeof(*group));

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
		/* Memory in place of a part of the file. */
		if (kind == MAPPED_FILE_FILE && strcmp(mappings[indexes[i]].path, group->path) != 0)
			group->hugepage_run_count++;
		group->lines[i] = (uint32_t)i;
		group->mappings[i] = mappings[indexes[i]];
		group->mappings[i].path = group->path;
		group->mappings[i].image_index = UINT32_MAX;
	}
	group->mapping_count = count - group->hugepage_run_count;
	*ret = STEAL(group);
	return NULL;
}

/* A group that was never opened passes on the one before it, whose names are in use. */
void mapped_file_follow(struct mapped_file *group, struct mapped_file *old)
{
	pthread_mutex_lock(&old->lock);
	if (mapped_file_is_open(old))
		group->before = mapped_file_share(old);
	else if (old->before)
		group->before = mapped_file_share(old->before);
	pthread_mutex_unlock(&old->lock);
}

static bool is_same_line(const struct sym_mapping *a, const struct sym_mapping *b)
{
	return a->start_address == b->start_address && a->end_address == b->end_address &&
	       a->offset == b->offset && a->inode == b->inode &&
	       a->device_major == b->device_major && a->device_minor == b->device_minor &&
	       a->protection == b->protection && a->deleted == b->deleted;
}

bool mapped_file_has_lines(const struct mapped_file *group, const struct sym_mapping *mappings,
			   const uint32_t *indexes, size_t count)
{
	if (mapped_file_line_count(group) != count ||
	    (count && strcmp(group->path, mappings[indexes[0]].path) != 0))
		return false;
	for (size_t i = 0; i < count; i++)
		if (!is_same_line(&group->mappings[i], &mappings[indexes[i]]))
			return false;
	return true;
}

bool mapped_file_is_open(const struct mapped_file *group)
{
	return atomic_load_explicit(&((struct mapped_file *)group)->opened, memory_order_acquire);
}

static struct sym_error *open_locked(struct mapped_file *group,
				     const struct mapped_file_context *context,
				     struct sym_error *(*fill)(const struct group_opening *))
{
	const struct group_opening opening = { group, context };
	struct sym_error *error = fill(&opening);

	if (error) {
		mapped_file_forget(group);
		return error;
	}
	mapped_file_release(STEAL(group->before));
	atomic_store_explicit(&group->opened, true, memory_order_release);
	return NULL;
}

struct sym_error *mapped_file_open(struct mapped_file *group,
				   const struct mapped_file_context *context,
				   struct sym_error *(*open)(const struct group_opening *))
{
	struct sym_error *error = NULL;

	if (mapped_file_is_open(group))
		return NULL;
	pthread_mutex_lock(&group->lock);
	if (!mapped_file_is_open(group))
		error = open_locked(group, context, open);
	pthread_mutex_unlock(&group->lock);
	return error;
}

/* The image before, whose names are known. Its problem may have been that of the old lines. */
static struct sym_image *find_before(const struct mapped_file *group, const char *path,
				     const struct object_file *object, uint64_t load_base)
{
	const struct mapped_file *before = group->before;

	for (size_t i = 0; object && before && i < before->image_count; i++) {
		struct sym_image *image = before->images[i];

		if (image->object == object && image->load_base == load_base &&
		    !image_trouble(image) && !image_was_short(image) && !strcmp(image->path, path))
			return image_share(image);
	}
	return NULL;
}

struct sym_error *mapped_file_add(const struct group_opening *opening, const char *path,
				  struct object_file *object, uint64_t load_base,
				  struct sym_image **ret)
{
	const struct mapped_file_context *context = opening->context;
	struct mapped_file *group = opening->group;
	struct sym_image *image AUTO_IMAGE = find_before(group, path, object, load_base);
	struct sym_error *error = NULL;

	if (!grow_items((void **)&group->images, &group->image_capacity, group->image_count,
			sizeof(*group->images)))
		return &sym_error_no_memory;
	if (!image) {
		error = image_create(path, object, &image);
		if (!error) {
			image->load_base = load_base;
			image->company = context->company;
			image->roots.fd = context->process->root_fd;
			image->roots.rights = process_rights(context->process);
			image->roots.dirs = context->debug_dirs;
			image->relative_map_dirs = context->relative_map_dirs;
			image->debug_fetch.fetch = context->fetch;
			image->debug_fetch.context = context->fetch_context;
			image->forks_for_dwarf = context->forks_for_dwarf;
		}
	}
	if (error)
		return error;
	*ret = image;
	group->images[group->image_count++] = STEAL(image);
	return NULL;
}

void mapped_file_give(const struct group_opening *opening, size_t line, struct sym_image *image,
		      bool placed)
{
	opening->group->places[line] = (struct mapping_owner){ .image = image, .placed = placed };
}

const struct image_part *mapped_file_part_at(const struct mapped_file *group, uint64_t offset)
{
	size_t low = ascending_items_up_to(group->parts, group->part_count, sizeof(*group->parts),
					   offset);

	return low && offset < group->parts[low - 1].end_offset ? &group->parts[low - 1] : NULL;
}

struct sym_error *mapped_file_place(const struct group_opening *opening, const char *path,
				    struct object_file *object, const struct placements *placements,
				    const uint32_t *lines, size_t line_count)
{
	for (size_t i = 0; i < placements->count; i++) {
		struct sym_image *image;
		struct sym_error *error =
			mapped_file_add(opening, path, object, placements->items[i].base, &image);

		if (error)
			return error;
		for (size_t j = 0; j < line_count; j++)
			if (placements->of_line[j] == i)
				mapped_file_give(opening, lines[j], image, true);
	}
	return NULL;
}
