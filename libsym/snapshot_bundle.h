/* SPDX-License-Identifier: MIT */
/*
 * Assemblies of a single-file application: parts of the executable that are
 * mapped from it (stored), or memory without a file (compressed, unpacked by
 * the runtime). Finds them, places them, and gives them their mappings.
 */
#ifndef LIBSYM_SNAPSHOT_BUNDLE_H
#define LIBSYM_SNAPSHOT_BUNDLE_H

#include "libsym/format/bundle.h"
#include "libsym/image_group.h"

/* The manifest of a bundle; its paths point into `view`, which is a view of the host. */
struct sym_error *snapshot_read_manifest(struct image *host, struct sparse_file *view,
					 struct bundle *ret, bool *is_bundle_ret)
	__attribute__((warn_unused_result));

/*
 * If `host` is a bundle: a module for each assembly inside that has code
 * mapped. The group's first module is the host's; what is wrong with the manifest becomes its
 * trouble.
 */
struct sym_error *snapshot_add_bundle(const struct group_opening *opening, struct image *host,
				      bool *is_bundle_ret) __attribute__((warn_unused_result));

/* Modules for the PE images in anonymous memory: a header page that begins with "MZ", code above
 * it. */
struct sym_error *snapshot_add_memory_assemblies(const struct group_opening *opening)
	__attribute__((warn_unused_result));

#endif
