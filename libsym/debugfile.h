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

#include "libsym/base/buf.h"
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

/* What .gnu_debuglink says. */
struct debugfile_link {
	const char *name; /* without a directory; lives as long as the sections */
	uint32_t sum;     /* CRC-32 of the whole file */
};

/* False when there is none, or what it says is no file name. */
bool debugfile_read_link(struct elf_sections *sections, struct debugfile_link *ret);

/*
 * A file that somebody says is the debug file of the image of `sections`: taken if it has
 * the build-id of the image, or, where one of the two has none, the sum of the link. Otherwise
 * *ret is NULL and `why` says what it is instead. Errors: NO_MEMORY.
 */
struct sym_error *debugfile_open_given(struct elf_sections *sections, const char *path,
				       struct buf *why, struct image **ret)
	__attribute__((warn_unused_result));

/* By build-id on this machine, then in the process's root, then by link. */
struct sym_error *debugfile_find(struct elf_sections *sections, int root_fd, struct image **ret)
	__attribute__((warn_unused_result));

#endif
