/* SPDX-License-Identifier: MIT */
/*
 * Detects a PE file that was overwritten in place after it was mapped.
 *
 * An unwritten page of a mapping always equals the file, also after an in-place change.
 * So headers and code prove nothing.
 * The loader relocates pages with pointers, so the process has its own copies of them.
 * In these copies each pointer of the original file differs by the load offset, unless the runtime
 * has bound it.
 * Truncating the file discards the copies. Then pointers appear unrelocated, as in the new file.
 */
#ifndef LIBSYM_PROCESS_RELOCATION_CHECK_H
#define LIBSYM_PROCESS_RELOCATION_CHECK_H

#include <stdint.h>

#include "libsym/error.h"
#include "libsym/file/object_file.h"
#include "libsym/process/process.h"

/*
 * NULL: the pointers agree, or there are none to compare.
 * Errors: STALE when they differ; PERMISSION when the memory cannot be read; NO_MEMORY.
 */
struct sym_error *relocation_check_ask(const struct process *process,
				       const struct object_file *object, uint64_t load_base)
	__attribute__((warn_unused_result));

#endif
