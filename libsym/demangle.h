/* SPDX-License-Identifier: MIT */
/*
 * Names as compilers of C++, Rust (legacy and v0), D and OCaml write them, as a person
 * would. Knows by its first characters what a name is; the rest is libiberty's, but for OCaml.
 * What would become longer than LIMIT_NAME_BYTES stays as it is: a few bytes can
 * spell out a name without end.
 */
#ifndef LIBSYM_DEMANGLE_H
#define LIBSYM_DEMANGLE_H

#include <stdbool.h>
#include <string.h>

#include "libsym/base/buf.h"

/* May this be a mangled name? Cheap, and never wrong when it says no. */
static inline bool demangle_is_candidate(const char *name)
{
	if (name[0] == 'c')
		return !strncmp(name, "caml", 4) && name[4] >= 'A' && name[4] <= 'Z';
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D' ||
				  name[1] == 'G' || name[1] == '_');
}

/*
 * Appends the name to `ret`; false when it is not mangled, or not in a way that is
 * understood, or for want of room, and then `ret` is as it was.
 */
bool demangle(const char *name, struct buf *ret);

#endif
