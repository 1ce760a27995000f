/* SPDX-License-Identifier: MIT */
/*
 * Code of a file that its process has copied into memory, in place of the file's mapping (anonymous
 * memory, a memory file).
 * Programs do so for large pages (node --use-largepages=on, BOLT's -hugify, opcache.huge_code_pages
 * of PHP, libhugetlbfs).
 * maps then no longer has the file for that code.
 * Memory between the mappings of a file counts as the file's if its bytes equal the file's.
 */
#ifndef LIBSYM_IMAGE_HUGEPAGE_TEXT_H
#define LIBSYM_IMAGE_HUGEPAGE_TEXT_H

#include "libsym/image/mapped_file.h"
#include "libsym/process/address_space.h"

/* Executable lines of memory, [first, end), adjacent to each other and to the lines around them. */
struct hugepage_run {
	size_t first, end;
};

/* Finds the next run after `run` (zeros at first); false at the end. */
bool hugepage_run_next(const struct address_space *space, struct hugepage_run *run);

/*
 * Copies the group's mappings. A remapped line gets the offset of the code that it contains, or an
 * impossible offset if it contains none.
 * The caller frees them; NULL when out of memory.
 */
struct sym_mapping *hugepage_text_show(const struct process *process,
				       const struct mapped_file *group,
				       const struct object_file *object);

#endif
