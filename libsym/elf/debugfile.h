/* SPDX-License-Identifier: MIT */
/*
 * The separate debug file of a native object. A file found by build-id must have the same build-id.
 * A file found by .gnu_debuglink must have the CRC-32 that the link contains. The paths are those
 * where distributions install debug files. The link of a debug file is not followed, so links
 * cannot form a circle. Nothing is fetched here.
 */
#ifndef LIBSYM_ELF_DEBUGFILE_H
#define LIBSYM_ELF_DEBUGFILE_H

#include "libsym/base/buf.h"
#include "libsym/elf/elf_sections.h"
#include "libsym/error.h"
#include "libsym/file/object_file.h"

/* Searched by gdb, elfutils and perf: .build-id/AB/CDEF....debug below it, and the path of the
 * object. */
#define DEBUGFILE_DIRECTORY "/usr/lib/debug"

/* The directories below which debug files are searched; borrowed. */
struct debugfile_roots {
	int fd; /* root of a process, below which the object has its path; or -1 */
	const struct rights
		*rights; /* of that process; files below its root are opened with them */
	/* searched like DEBUGFILE_DIRECTORY, before it; NULL terminated, or NULL */
	const char *const *dirs;
};

/* The content of .gnu_debuglink. */
struct debugfile_link {
	const char *name; /* without a directory; valid as long as the sections */
	uint32_t sum;     /* CRC-32 of the whole file */
};

/* A candidate path of a debug file. */
struct debugfile_place {
	const char *path;
	int root_fd;                 /* as for path_open_in_root() */
	const struct rights *rights; /* with which to open it; NULL: the caller's own */
	/* The file must have this sum; NULL: it must have the build-id. */
	const struct debugfile_link *link;
};

/* Called for each path in order. An error, or *is_over, ends the search. */
typedef struct sym_error *debugfile_visit_fn(void *context, const struct debugfile_place *place,
					     bool *is_over);

/*
 * Visits the paths where the debug file of the object of `sections` may be, in this order:
 *
 *   by build-id: on this machine, then below the process's root
 *   by link: beside the object, in .debug beside it, and below DEBUGFILE_DIRECTORY by its path;
 * below the process's root, then on this machine
 *
 * Both start with the directories of `roots`, which belong to this machine. Errors: NO_MEMORY.
 */
struct sym_error *debugfile_each_place(struct elf_sections *sections,
				       const struct debugfile_roots *roots,
				       debugfile_visit_fn *visit, void *context)
	__attribute__((warn_unused_result));

/* Returns false if there is no link, or its name is not a plain file name. */
bool debugfile_read_link(struct elf_sections *sections, struct debugfile_link *ret);

/*
 * Opens a file that the caller provides as the debug file of the object of `sections`. It must have
 * the build-id of the object or, if one of the two has none, the sum of the link; and its code must
 * lie where the object's does. Otherwise *ret is NULL and `why` describes the mismatch. Errors:
 * NO_MEMORY.
 */
struct sym_error *debugfile_open_given(struct elf_sections *sections, const char *path,
				       struct buf *why, struct object_file **ret)
	__attribute__((warn_unused_result));

/* Records the reason for addresses without a name; `why` contains the path of the file. */
void debugfile_record_unused(const struct object_file *object, const char *why);

/*
 * The first file in these paths that fits; *ret is NULL if there is none. A file that exists and
 * cannot be used is skipped; object_file_debug_problem() has the reason. Errors: NO_MEMORY.
 *
 * distance_ret: as elf_sections_distance(). A file whose code lies elsewhere does not fit.
 */
struct sym_error *debugfile_find(struct elf_sections *sections, const struct debugfile_roots *roots,
				 struct object_file **ret, uint64_t *distance_ret)
	__attribute__((warn_unused_result));

#endif
