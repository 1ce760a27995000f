/* SPDX-License-Identifier: MIT */
/*
 * The few lines of maps around some addresses, asked of the kernel one by one
 * (PROCMAP_QUERY, Linux 6.11), instead of the text of all: of a process with thousands of lines
 * that text is most of what the name of one address costs. See fs/proc/task_mmu.c.
 *
 * Gives up rather than guess: whoever gets nothing here reads the text.
 */
#ifndef LIBSYM_MAPS_NEAR_H
#define LIBSYM_MAPS_NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/cleanup.h"
#include "libsym/format/maps.h"
#include "libsym/process.h"

enum {
	MAPS_NEAR_ADDRESSES = 16,  /* beyond that the text is as cheap */
	MAPS_NEAR_LINES = 64,      /* around one address; an image has about five */
	MAPS_NEAR_FIRST_PAGES = 64 /* see below */
};

struct maps_near {
	struct maps_line *lines; /* ascending, disjoint */
	size_t count;
	/* private */
	char **paths; /* of the lines */
	size_t path_count;
};

/*
 * For each address the lines of one copy of the file that it is code of: from the one that shows
 * the file's first byte, with anonymous memory in the middle and at its end, to where something
 * else begins. Of all other files only lines that may be executed and show the first byte: a
 * jitdump is told by its own.
 *
 * False, and nothing to deinit, when the kernel cannot be asked, when that is not all there
 * is to know of an address (no file there, or one that was deleted or is a device or memory, not
 * executable, its first byte not below), for more than the numbers above, and when memory is short.
 */
bool maps_near_read(const struct process *process, const uint64_t *addresses, size_t count,
		    struct maps_near *ret);
void maps_near_deinit(struct maps_near *near);

#endif
