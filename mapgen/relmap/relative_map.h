/* SPDX-License-Identifier: MIT */
/*
 * Makes the relative map of one image in a place, unless it is there already. The rows come from
 * libsym, or from a real crossgen when --crossgen is given. Counts the outcomes for the last line
 * of generate.
 */
#ifndef MAPGEN_RELMAP_RELATIVE_MAP_H
#define MAPGEN_RELMAP_RELATIVE_MAP_H

#include <stdbool.h>
#include <stddef.h>

#include "libsym/libsym.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/options.h"
#include "mapgen/relmap/relmap_cache.h"

enum map_outcome {
	MAP_MADE,
	MAP_PARTLY,  /* made, but without the methods whose names are unknown */
	MAP_KEPT,    /* was there already */
	MAP_NO_CODE, /* the image has no precompiled code */
	MAP_FAILED,  /* the image cannot be used, or the map cannot be written */
	MAP_OUTCOMES,
};

struct map_maker {
	struct relmap_cache place;
	enum sym_map_format format;
	const char *crossgen; /* NULL: libsym makes the maps */
	struct text_list platform_dirs;
	struct sym_budget *budget; /* NULL: none */
};

/*
 * @param path_ret where the map is; heap; NULL unless there is one
 * @param error_ret with MAP_PARTLY and MAP_FAILED why, else NULL
 */
enum map_outcome relative_map_make(struct map_maker *maker, struct sym_image *image,
				   char **path_ret, struct sym_error **error_ret);

/* Word for an outcome in JSON; static. */
const char *map_outcome_text(enum map_outcome outcome);

#endif
