/* SPDX-License-Identifier: MIT */
/*
 * Symbols of libsym put into a stand-in, with names in the form that was asked
 * for. Knows options and symbols; where a stand-in goes is others' matter.
 */
#ifndef MAPGEN_STANDIN_IMAGE_H
#define MAPGEN_STANDIN_IMAGE_H

#include "libsym/libsym.h"
#include "mapgen/options.h"
#include "mapgen/standin_elf.h"

/* Adds one symbol, its name and tier as the options say. */
void standin_image_add(struct standin_elf *elf, const struct options *options,
		       const struct sym_symbol *symbol);

/*
 * The stand-in of a file with precompiled code, by offset, without a build-id, into `ret`
 * (empty, with a maximum). NULL on success, also where there is no such code
 * (*symbols_ret is 0 then, and nothing was written), else heap text: why not.
 */
char *standin_image_render(struct sym_image *image, const struct options *options,
			   const char *origin, struct buf *ret, size_t *symbols_ret);

#endif
