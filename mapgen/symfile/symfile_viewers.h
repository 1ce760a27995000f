/* SPDX-License-Identifier: MIT */
/*
 * Which processes map a file with a given path. perf uses a symbol file for all of them, whether
 * they map the same file or another one with that path. Reads /proc.
 */
#ifndef MAPGEN_SYMFILE_SYMFILE_VIEWERS_H
#define MAPGEN_SYMFILE_SYMFILE_VIEWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped_identity {
	const char *path;
	uint64_t inode;
	uint32_t device_major, device_minor;
};

struct symfile_viewer {
	int32_t pid;
	bool other_file;      /* maps another file with this path, so its names would be wrong */
	const char *path;     /* the first one, in the list of the caller */
	bool other_namespace; /* mount namespace: perf looks there while the process lives */
};

/*
 * Processes other than `own_pid` that map one of `files` as code; *ret is heap. False when out of
 * memory. Processes that may not be looked at are left out.
 */
bool symfile_viewers_find(const struct mapped_identity *files, size_t count, int32_t own_pid,
			  struct symfile_viewer **ret, size_t *count_ret);

#endif
