/* SPDX-License-Identifier: MIT */
/* The list of files in a single-file application. */
#ifndef LIBSYM_IMAGE_BUNDLE_MANIFEST_H
#define LIBSYM_IMAGE_BUNDLE_MANIFEST_H

#include "libsym/file/object_file.h"
#include "libsym/format/dotnet/bundle.h"

/* Reads the manifest of a bundle. Its paths point into `view`, which is a view of the host. */
struct sym_error *bundle_manifest_read(struct object_file *host, struct sparse_file *view,
				       struct bundle *ret, bool *is_bundle_ret)
	__attribute__((warn_unused_result));

#endif
