/* SPDX-License-Identifier: MIT */
/*
 * Whether a process contains a .NET runtime, which version, and in which shape.
 * Decided from its mappings. Only files that look like a host are opened. The runtime is not asked.
 *
 *   framework-dependent  libcoreclr.so below .../shared/Microsoft.NETCore.App/VERSION/
 *   self-contained       libcoreclr.so anywhere else
 *   single-file          the runtime is part of the executable, or was unpacked from it (3.x)
 *   nativeaot            compiled ahead of time: no JIT, no metadata, plain ELF
 */
#ifndef LIBSYM_CLR_RUNTIME_INFO_H
#define LIBSYM_CLR_RUNTIME_INFO_H

#include <stdbool.h>
#include <stddef.h>

#include "libsym/error.h"
#include "libsym/process/address_space.h"
#include "libsym/process/process.h"

struct runtime_info {
	const char *shape;    /* one of the four words, static; NULL when there is no runtime */
	char version[32];     /* "10.0.12", "10.0.0-rc.1"; "" when unknown */
	size_t mapping_index; /* first mapping of its file; ADDRESS_SPACE_NONE without a runtime */
};

/*
 * Foreign bytes never make it fail: what cannot be read is no runtime, or one of unknown version.
 */
struct sym_error *runtime_info_read(const struct process *process,
				    const struct address_space *space, struct runtime_info *ret)
	__attribute__((warn_unused_result));

/* 10 for "10.0.12"; 0 without a runtime or a known version. */
int runtime_info_major(const struct runtime_info *info);

#endif
