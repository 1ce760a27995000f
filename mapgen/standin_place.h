/* SPDX-License-Identifier: MIT */
/*
 * Stand-ins below a directory of debug files (/usr/lib/debug), where perf looks
 * for the names of a file by its path. A list of what was put there, directories
 * that were made for it included, lies beside: `.dotnet-mapgen`, a line each, "F PATH" or
 * "D PATH"; each line is there before what it tells of. What was not put there by us is never
 * touched.
 */
#ifndef MAPGEN_STANDIN_PLACE_H
#define MAPGEN_STANDIN_PLACE_H

#include <stdbool.h>
#include <stddef.h>

struct standin_place {
	const char *root; /* "/usr/lib/debug" */
	char **files;     /* paths below the root, with a leading '/' */
	size_t file_count;
	char **directories; /* as above; "" is the root itself */
	size_t directory_count;
	int lock_fd;
};

/* Reads the list, and keeps others from changing it. NULL, or why not. `create`: for install. */
char *standin_place_open(struct standin_place *place, const char *root, bool create);
void standin_place_close(struct standin_place *place);

enum standin_put {
	STANDIN_PUT,
	STANDIN_SAME,    /* it was there */
	STANDIN_FOREIGN, /* a file that is not ours is there */
	STANDIN_FAILED,
};

/* Puts a stand-in for the file at `path`. *failure_ret: heap, with STANDIN_FAILED. */
enum standin_put standin_place_put(struct standin_place *place, const char *path, const void *bytes,
				   size_t size_bytes, char **failure_ret);

/* Removes the stand-in for `path`; NULL, or why not. */
char *standin_place_remove(struct standin_place *place, const char *path);

/* Writes the list, or removes it with every directory that was made and is empty. */
char *standin_place_save(struct standin_place *place);

/* The line that a stand-in has about itself; false when the file is not ours or gone. */
bool standin_place_origin(const struct standin_place *place, const char *path, char *room,
			  size_t room_bytes);

#endif
