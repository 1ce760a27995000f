/* SPDX-License-Identifier: MIT */
/*
 * Adds symbols of libsym to a symbol file, with names in the form of the options. Does not know
 * where the file goes.
 */
#ifndef MAPGEN_SYMFILE_SYMFILE_IMAGE_H
#define MAPGEN_SYMFILE_SYMFILE_IMAGE_H

#include "libsym/libsym.h"
#include "mapgen/cli/options.h"
#include "mapgen/symfile/symfile.h"

/* Adds one symbol, with its name and tier as the options say. */
void symfile_image_add(struct symfile *elf, const struct options *options,
		       const struct sym_symbol *symbol);

/*
 * Makes the symbol file of a file with precompiled code, by offset, without a build-id, in `ret`
 * (empty, with a maximum). Without such code *symbols_ret is 0, and nothing was written.
 */
struct sym_error *symfile_image_render(struct sym_image *image, const struct options *options,
				       const char *origin, struct buf *ret, size_t *symbols_ret);

#endif
