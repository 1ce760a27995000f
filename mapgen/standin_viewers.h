/* SPDX-License-Identifier: MIT */
/*
 * Which processes map a file of a given path: perf shows a stand-in for all of
 * them, whether they map the same file or another one of that path. Reads /proc.
 */
#ifndef MAPGEN_STANDIN_VIEWERS_H
#define MAPGEN_STANDIN_VIEWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped_identity {
	const char *path;
	uint64_t inode;
	uint32_t device_major, device_minor;
};

struct standin_viewer {
	int32_t pid;
	bool other_file;      /* maps another file of this path: its names would be wrong */
	const char *path;     /* the first; of the caller's identities */
	bool other_namespace; /* of mounts: perf looks there while it lives */
};

/*
 * Processes other than `own_pid` that have one of `files` mapped as code; *ret is heap. False
 * when there is no memory. What may not be looked at is not among them.
 */
bool standin_viewers_find(const struct mapped_identity *files, size_t count, int32_t own_pid,
			  struct standin_viewer **ret, size_t *count_ret);

#endif
