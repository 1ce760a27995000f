/* SPDX-License-Identifier: MIT */
/*
 * Code of a file that its process has copied into memory, which it then put in place of the file's
 * (anonymous memory, a memory file): programs do so to have their code in large pages (node
 * --use-largepages=on, BOLT's -hugify, opcache.huge_code_pages of PHP, libhugetlbfs), and their
 * file is not named in the maps any more. Memory in the middle of the mappings of a file is
 * believed to be that where its bytes are those of the file.
 */
#ifndef LIBSYM_REMAPPED_CODE_H
#define LIBSYM_REMAPPED_CODE_H

#include "libsym/address_space.h"
#include "libsym/image_group.h"

/* Lines of code in memory, [first, end), which touch each other and the lines around them. */
struct remapped_run {
	size_t first, end;
};

/* The next run behind the one that was found last (zeros at first); false behind the last one. */
bool remapped_run_next(const struct address_space *space, struct remapped_run *run);

/*
 * The group's mappings, those that are remapped with the offset into the file that they show, and
 * with one that no file has where they do not show it. The caller frees them; NULL for want of
 * memory.
 */
struct sym_mapping *remapped_code_show(const struct process *process,
				       const struct image_group *group, const struct image *image);

#endif
