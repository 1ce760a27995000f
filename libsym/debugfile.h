/* SPDX-License-Identifier: MIT */
/*
 * The separate debug file of a native image: found by build-id, and believed
 * only if it has the same one. Knows where distributions put them. Refuses to
 * fetch anything.
 */
#ifndef LIBSYM_DEBUGFILE_H
#define LIBSYM_DEBUGFILE_H

#include "libsym/elf_sections.h"
#include "libsym/error.h"
#include "libsym/image.h"

/* AB/CDEF....debug is looked for here, as gdb, elfutils and perf do. */
#define DEBUGFILE_TREE "/usr/lib/debug/.build-id"

/*
 * *ret is NULL when there is none that fits. A file that lies there and cannot be used
 * is none. Errors: NO_MEMORY.
 */
struct sym_error *debugfile_open(const char *tree, const struct elf_build_id *build_id,
				 struct image **ret) __attribute__((warn_unused_result));

#endif
