/* SPDX-License-Identifier: MIT */
/*
 * File names of relative maps, as the compilers and tools of the field write them.
 *
 *   crossgen, crossgen2 (format 0)   NAME.ni.{MVID}.map; of a composite NAME.ni.{composite}.map
 *   crossgen2 (format 1)             NAME.ni.r2rmap, unless the image contains another name
 */
#ifndef LIBSYM_FILE_RELMAP_NAME_H
#define LIBSYM_FILE_RELMAP_NAME_H

#include "libsym/base/buf.h"
#include "libsym/file/object_file.h"

/* `path` is the displayed path; a composite has no other name. */
void relmap_name_relative(struct object_file *object, const char *path, struct buf *ret);
void relmap_name_r2rmap(struct object_file *object, const char *path, struct buf *ret);

#endif
