/* SPDX-License-Identifier: MIT */
/* The memory of the process of a core file: the core, then the mapped files. */
#ifndef LIBSYM_SNAPSHOT_CORE_MEMORY_H
#define LIBSYM_SNAPSHOT_CORE_MEMORY_H

#include "libsym/error.h"
#include "libsym/process/remote_memory.h"

struct sym_snapshot;

/* Opens the memory of a snapshot that was opened from a core; it must not outlive that. */
struct sym_error *core_memory_open(const struct sym_snapshot *snapshot, struct remote_memory **ret)
	__attribute__((warn_unused_result));

#endif
