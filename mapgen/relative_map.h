/* SPDX-License-Identifier: MIT */
/*
 * Makes the relative map of one image in a place, unless it is there already.
 * The rows come from libsym, or from a real crossgen when one was named.
 * Counts what became of the images, for the closing line of generate.
 */
#ifndef MAPGEN_RELATIVE_MAP_H
#define MAPGEN_RELATIVE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "libsym/libsym.h"
#include "mapgen/map_place.h"
#include "mapgen/message.h"
#include "mapgen/options.h"

enum map_outcome {
	MAP_MADE,
	MAP_PARTLY,  /* there is one, and methods without a name are not in it */
	MAP_KEPT,    /* was there already */
	MAP_NO_CODE, /* the image has no precompiled code of its own */
	MAP_FAILED,  /* nothing can be said of the image */
	MAP_UNSAVED, /* the image is well, the place for its map is not */
	MAP_OUTCOMES,
};

struct map_maker {
	struct map_place place;
	enum sym_map_format format;
	const char *crossgen; /* NULL: libsym's own reader */
	struct text_list platform_dirs;
};

/*
 * @param path_ret where the map is; heap; NULL unless there is one
 * @param reason_ret heap; with MAP_PARTLY, MAP_FAILED and MAP_UNSAVED why, else NULL
 */
enum map_outcome relative_map_make(struct map_maker *maker, struct sym_image *image,
				   char **path_ret, char **reason_ret);

/* Word for an outcome in JSON; static. */
const char *map_outcome_text(enum map_outcome outcome);

#endif
