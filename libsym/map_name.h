/* SPDX-License-Identifier: MIT */
/*
 * The names that files with the relative map of an image have, as the compilers
 * and the tools of the field spell them. Knows no directories.
 *
 *   crossgen, crossgen2 (format 0)   NAME.ni.{MVID}.map; of a composite NAME.ni.{composite}.map
 *   crossgen2 (format 1)             NAME.ni.r2rmap, where the image may say another name itself
 */
#ifndef LIBSYM_MAP_NAME_H
#define LIBSYM_MAP_NAME_H

#include "libsym/base/buf.h"
#include "libsym/image.h"

/* `path` is the image's, as shown: a composite has no other name. */
void map_name_relative(struct image *image, const char *path, struct buf *ret);
void map_name_r2rmap(struct image *image, const char *path, struct buf *ret);

#endif
