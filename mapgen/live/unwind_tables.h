/* SPDX-License-Identifier: MIT */
/* Whether an ELF image has unwind tables: musl's C library has none, and a static program of it. */
#ifndef MAPGEN_LIVE_UNWIND_TABLES_H
#define MAPGEN_LIVE_UNWIND_TABLES_H

#include <stdbool.h>

#include "libsym/libsym.h"

/*
 * Asks the unwinder about some of the functions. False when most of them have no rule; true when
 * the image has no functions with a name, or cannot be read.
 */
bool unwind_tables_are_there(struct sym_image *image);

#endif
