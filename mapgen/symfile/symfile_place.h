/* SPDX-License-Identifier: MIT */
/*
 * Symbol files below a directory of debug files (/usr/lib/debug), where perf looks for the names of
 * a file by its path. The file `.dotnet-mapgen` beside them lists what was created, directories
 * included: a line each, "F PATH" or "D PATH", written before the file is created. Other files are
 * never touched.
 */
#ifndef MAPGEN_SYMFILE_SYMFILE_PLACE_H
#define MAPGEN_SYMFILE_SYMFILE_PLACE_H

#include <stdbool.h>
#include <stddef.h>

struct symfile_place {
	const char *root; /* "/usr/lib/debug" */
	char **files;     /* paths below the root, with a leading '/' */
	size_t file_count;
	char **directories; /* paths of directories; "" is the root itself */
	size_t directory_count;
	int lock_fd;
};

/* Reads the list, and locks it. `create`: for install. */
struct sym_error *symfile_place_open(struct symfile_place *place, const char *root, bool create);
void symfile_place_close(struct symfile_place *place);

enum symfile_put {
	SYMFILE_PUT,
	SYMFILE_SAME,    /* the same file was there */
	SYMFILE_FOREIGN, /* another file is there */
	SYMFILE_FAILED,
};

/* Writes the symbol file for the file at `path`. *failure_ret: with SYMFILE_FAILED. */
enum symfile_put symfile_place_put(struct symfile_place *place, const char *path, const void *bytes,
				   size_t size_bytes, struct sym_error **failure_ret);

/* Removes the symbol file for `path`. */
struct sym_error *symfile_place_remove(struct symfile_place *place, const char *path);

/* Writes the list; when it is empty, removes it and every empty directory that was created. */
struct sym_error *symfile_place_save(struct symfile_place *place);

/* The origin line of a symbol file; false when the file is gone or not ours. */
bool symfile_place_origin(const struct symfile_place *place, const char *path, char *room,
			  size_t room_bytes);

#endif
