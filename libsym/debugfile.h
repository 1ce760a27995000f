/* SPDX-License-Identifier: MIT */
/*
 * The separate debug file of a native image: found by build-id, and believed
 * only if it has the same one, or by .gnu_debuglink, and believed only if its bytes
 * have the sum that is written there. Knows where distributions put them. A debug
 * file's own link is not followed, so that links cannot lead in a circle. Refuses
 * to fetch anything.
 */
#ifndef LIBSYM_DEBUGFILE_H
#define LIBSYM_DEBUGFILE_H

#include "libsym/elf_sections.h"
#include "libsym/error.h"
#include "libsym/image.h"

/* gdb, elfutils and perf look here: .build-id/AB/CDEF....debug, and by the path of the image. */
#define DEBUGFILE_DIRECTORY "/usr/lib/debug"

/* AB/CDEF....debug is looked for here. */
#define DEBUGFILE_TREE DEBUGFILE_DIRECTORY "/.build-id"

/*
 * By build-id. *ret is NULL when there is none that fits. A file that lies there and cannot be used
 * is none. `root_fd`: see path_open_in_root(). Errors: NO_MEMORY.
 */
struct sym_error *debugfile_open(int root_fd, const char *tree, const struct elf_build_id *build_id,
				 struct image **ret) __attribute__((warn_unused_result));

/*
 * By the link in `sections`, whose image has its path below `root_fd` (a process's
 * root, or -1): beside the image, in .debug beside it, and below `directory` by the
 * path of the image there; then the same on this machine. Otherwise as above.
 */
struct sym_error *debugfile_open_linked(struct elf_sections *sections, int root_fd,
					const char *directory, struct image **ret)
	__attribute__((warn_unused_result));

/* By build-id on this machine, then in the process's root, then by link. */
struct sym_error *debugfile_find(struct elf_sections *sections, int root_fd, struct image **ret)
	__attribute__((warn_unused_result));

#endif
