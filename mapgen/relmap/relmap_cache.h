/* SPDX-License-Identifier: MIT */
/*
 * Where relative maps are kept: the caller's cache, with one private directory for each content
 * key, or the directory of --output. Knows file names, owners and modes; nothing of what is in a
 * map.
 */
#ifndef MAPGEN_RELMAP_RELMAP_CACHE_H
#define MAPGEN_RELMAP_RELMAP_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "libsym/base/text_set.h"
#include "libsym/libsym.h"

struct relmap_cache {
	char *path; /* path for messages and for the library */
	int directory_fd;
	bool is_cache;
	bool was_used;         /* the cache has a size limit */
	struct text_set taken; /* names of files that this run has written to --output */
};

/*
 * Opens the directory `output`, which is created when it does not exist. NULL: the cache,
 * $XDG_CACHE_HOME/dotnet-mapgen; without that variable /var/cache/dotnet-mapgen for root and
 * ~/.cache/dotnet-mapgen for other users. Refused unless it is a directory of mode 0700 that
 * belongs to the caller.
 */
struct sym_error *relmap_cache_open(struct relmap_cache *place, const char *output);
void relmap_cache_close(struct relmap_cache *place);

/* A file in a place: its open directory, its name, and its path for messages. */
struct relmap_cache_entry {
	int directory_fd;
	char *name;
	char *path;
	bool aside; /* in a directory named after the image's content, because another map of this
		       name has the place */
};

/* The slot of an image's map. */
struct sym_error *relmap_cache_entry_open(struct relmap_cache *place, struct sym_image *image,
					  enum sym_map_format format,
					  struct relmap_cache_entry *ret);
void relmap_cache_entry_close(struct relmap_cache_entry *slot);

/* Rows of methods in a map, without the header rows of an r2rmap. */
uint64_t map_rows(const char *text, size_t size_bytes);

/* Counts the rows of the regular file in the slot; false when it cannot be read. */
bool relmap_cache_entry_rows(const struct relmap_cache_entry *slot, uint64_t *ret);

/*
 * Writes a map. Where an earlier image of this run has written another map of this name to
 * --output, moves the slot aside first. A message says when other bytes were in that directory.
 * Errors: IO.
 */
struct sym_error *relmap_cache_entry_write(struct relmap_cache *place, struct sym_image *image,
					   struct relmap_cache_entry *slot, const char *text,
					   size_t size_bytes);

#endif
