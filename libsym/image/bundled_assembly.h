/* SPDX-License-Identifier: MIT */
/*
 * Metadata of an assembly without code inside a single-file application.
 * Such an assembly is not an image of the process. The executable contains it, stored or
 * compressed.
 * Each object is one file, by its name in the manifest.
 */
#ifndef LIBSYM_IMAGE_BUNDLED_ASSEMBLY_H
#define LIBSYM_IMAGE_BUNDLED_ASSEMBLY_H

#include "libsym/file/object_file.h"
#include "libsym/format/dotnet/metadata.h"

struct bundled_assembly;

/*
 * `host`: the executable. `file_name`: the file inside ("App.dll").
 * *ret is NULL when the host is not a bundle, or has no such file, or more than one.
 * Errors: those of reading; FORMAT; LIMIT; NO_MEMORY.
 */
struct sym_error *bundled_assembly_open(struct object_file *host, const char *file_name,
					struct bundled_assembly **ret)
	__attribute__((warn_unused_result));
void bundled_assembly_close(struct bundled_assembly *assembly);

/* It lives as long as the assembly. */
const struct pe *bundled_assembly_pe(const struct bundled_assembly *assembly);
const struct metadata *bundled_assembly_metadata(const struct bundled_assembly *assembly);

DEFINE_GUARD(bundled_assembly, struct bundled_assembly *, bundled_assembly_close)
#define AUTO_BUNDLED_ASSEMBLY GUARDED(bundled_assembly)

#endif
