/* SPDX-License-Identifier: MIT */
/*
 * The images of a snapshot while they are being found: every opened file or
 * part of a file, the modules that were made of them, and which mapping belongs
 * to which. Knows nothing of how images are found (snapshot_images.h,
 * snapshot_bundle.h).
 */
#ifndef LIBSYM_IMAGE_COLLECTION_H
#define LIBSYM_IMAGE_COLLECTION_H

#include "libsym/placement.h"
#include "libsym/snapshot.h"

struct mapped_module;

struct image_collection {
	struct sym_snapshot *snapshot; /* borrowed; its mappings and is_placed are written */
	struct mapped_module *modules;
	size_t module_count, module_capacity;
	struct image **images; /* owned */
	size_t image_count, image_capacity;
};

void image_collection_deinit(struct image_collection *collection);

/* Keeps an opened image until the snapshot ends; takes it over on success only. */
struct sym_error *image_collection_keep(struct image_collection *collection, struct image *image)
	__attribute__((warn_unused_result));

/* A module of a kept image, or of none when the file could not be opened; *ret may be NULL. */
struct sym_error *image_collection_add(struct image_collection *collection, const char *path,
				       struct image *image, struct sym_image **ret)
	__attribute__((warn_unused_result));

/* The module that was added as the `number`-th. */
struct sym_image *image_collection_module(const struct image_collection *collection, size_t number);

/* The mapping belongs to the module that was added as the `module`-th. */
void image_collection_give(struct image_collection *collection, uint32_t mapping, uint32_t module,
			   bool placed);

/*
 * A module for each placement of the image; `lines` are those that the
 * placements were found from. What no placement explains is left as it is.
 */
struct sym_error *image_collection_place(struct image_collection *collection, const char *path,
					 struct image *image, const struct placements *placements,
					 const uint32_t *lines, size_t line_count)
	__attribute__((warn_unused_result));

/* Numbers the modules by their first mapping and hands everything to the snapshot. */
struct sym_error *image_collection_finish(struct image_collection *collection)
	__attribute__((warn_unused_result));

#endif
