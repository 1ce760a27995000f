/* SPDX-License-Identifier: MIT */
/*
 * Assemblies of a single-file application: stored ones are mapped from the executable; compressed
 * ones are unpacked by the runtime into memory without a file.
 * It finds them, places them, and assigns their mappings.
 */
#ifndef LIBSYM_IMAGE_DISCOVER_BUNDLE_H
#define LIBSYM_IMAGE_DISCOVER_BUNDLE_H

#include "libsym/image/mapped_file.h"

/*
 * If `host` is a bundle, adds an image for each assembly with mapped code.
 * The first image of the group is the host's. A bad manifest becomes its problem.
 */
struct sym_error *snapshot_add_bundle(const struct group_opening *opening, struct object_file *host,
				      bool *is_bundle_ret) __attribute__((warn_unused_result));

/*
 * Adds images for PE images in anonymous memory: a header page that begins with "MZ", and code
 * above it.
 */
struct sym_error *snapshot_add_memory_assemblies(const struct group_opening *opening)
	__attribute__((warn_unused_result));

#endif
