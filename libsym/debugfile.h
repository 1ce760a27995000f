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

/* Below what debug files are looked for; borrowed. */
struct debugfile_roots {
	int fd;                  /* a process's root, below which the image has its path, or -1 */
	const char *const *dirs; /* as DEBUGFILE_DIRECTORY, before it; NULL terminated, or NULL */
};

/* What .gnu_debuglink says. */
struct debugfile_link {
	const char *name; /* without a directory; lives as long as the sections */
	uint32_t sum;     /* CRC-32 of the whole file */
};

/* Where a debug file may lie. */
struct debugfile_place {
	const char *path;
	int root_fd; /* see path_open_in_root() */
	/* Its sum has to be that of the link; NULL: it has to have the build-id. */
	const struct debugfile_link *link;
};

/* Told one place after another; what it returns, or *is_over, ends that. */
typedef struct sym_error *debugfile_visit_fn(void *context, const struct debugfile_place *place,
					     bool *is_over);

/*
 * The places where the debug file of the image of `sections` is looked for, in this order: by
 * build-id on this machine, then below the process's root; by the link beside the image, in .debug
 * beside it, and below DEBUGFILE_DIRECTORY by the path of the image; the same on this machine.
 * Both begin with the directories of `roots`, which are of this machine. Errors: NO_MEMORY.
 */
struct sym_error *debugfile_each_place(struct elf_sections *sections,
				       const struct debugfile_roots *roots,
				       debugfile_visit_fn *visit, void *context)
	__attribute__((warn_unused_result));

/* False when there is none, or what it says is no file name. */
bool debugfile_read_link(struct elf_sections *sections, struct debugfile_link *ret);

/*
 * A file that somebody says is the debug file of the image of `sections`: taken if it has
 * the build-id of the image, or, where one of the two has none, the sum of the link, and its code
 * is where the image's is. Otherwise
 * *ret is NULL and `why` says what it is instead. Errors: NO_MEMORY.
 */
struct sym_error *debugfile_open_given(struct elf_sections *sections, const char *path,
				       struct buf *why, struct image **ret)
	__attribute__((warn_unused_result));

/*
 * The first in these places that fits; *ret is NULL when there is none. A file that lies there and
 * cannot be used is none. Errors: NO_MEMORY.
 *
 * distance_ret: as elf_sections_distance() has it; one that does not lie alike is none.
 */
struct sym_error *debugfile_find(struct elf_sections *sections, const struct debugfile_roots *roots,
				 struct image **ret, uint64_t *distance_ret)
	__attribute__((warn_unused_result));

#endif
