/* SPDX-License-Identifier: MIT */
/*
 * Metadata of an assembly inside a single-file application that has no code of
 * its own, and so is no image of the process: stored in the executable as it is,
 * or compressed. Knows one file at a time, by its name in the manifest.
 */
#ifndef LIBSYM_BUNDLED_ASSEMBLY_H
#define LIBSYM_BUNDLED_ASSEMBLY_H

#include "libsym/format/metadata.h"
#include "libsym/image.h"

struct bundled_assembly;

/*
 * `host` is the executable, `file_name` that of the file inside ("App.dll"). *ret is NULL
 * when the host is no bundle, or has no such file, or more than one. Errors: those of
 * reading, FORMAT, LIMIT, NO_MEMORY.
 */
struct sym_error *bundled_assembly_open(struct image *host, const char *file_name,
					struct bundled_assembly **ret)
	__attribute__((warn_unused_result));
void bundled_assembly_close(struct bundled_assembly *assembly);

/* Lives as long as the assembly. */
const struct metadata *bundled_assembly_metadata(const struct bundled_assembly *assembly);

DEFINE_GUARD(bundled_assembly, struct bundled_assembly *, bundled_assembly_close)
#define AUTO_BUNDLED_ASSEMBLY GUARDED(bundled_assembly)

#endif
