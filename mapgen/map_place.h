/* SPDX-License-Identifier: MIT */
/*
 * Where relative maps are kept: the caller's cache, one private directory for
 * each content key, or a directory that was named with --output. Knows file
 * names, owners and modes; knows nothing of what is in a map.
 */
#ifndef MAPGEN_MAP_PLACE_H
#define MAPGEN_MAP_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "libsym/libsym.h"

struct taken_name;

struct map_place {
	char *path; /* as shown and as handed to the library */
	int directory_fd;
	bool is_cache;
	struct taken_name *taken; /* file names given out, with the content they are for */
};

/*
 * $XDG_CACHE_HOME/dotnet-mapgen; without that variable /var/cache/dotnet-mapgen
 * for root and ~/.cache/dotnet-mapgen for everybody else. Refused unless it is a
 * directory of mode 0700 that belongs to the caller. NULL on success, else heap text: why not.
 */
char *map_place_open_cache(struct map_place *place);

/* A directory of the caller's choice; created when missing. */
char *map_place_open_directory(struct map_place *place, const char *path);
void map_place_close(struct map_place *place);

/* A file of a place: its directory held open, its name, its path to show. */
struct map_slot {
	int directory_fd;
	char *name;
	char *path;
	bool aside; /* in a directory of its own: another image of this name and MVID has the place
		     */
};

/* The slot of an image's map; NULL on success, else heap text: why not. */
char *map_slot_open(struct map_place *place, struct sym_image *image, enum sym_map_format format,
		    struct map_slot *ret);
void map_slot_close(struct map_slot *slot);

/* Rows of methods in a map: the header rows of an r2rmap do not count. */
uint64_t map_rows(const char *text, size_t size_bytes);

/* The same of the regular file in the slot; false when there is none that can be read. */
bool map_slot_rows(const struct map_slot *slot, uint64_t *ret);

enum slot_write {
	SLOT_WRITTEN,
	SLOT_UNCHANGED, /* the same bytes were there */
	SLOT_REPLACED,  /* other bytes were there */
	SLOT_FAILED,    /* errno says why */
};

enum slot_write map_slot_write(const struct map_slot *slot, const struct map_place *place,
			       const char *text, size_t size_bytes);

#endif
