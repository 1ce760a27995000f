/* SPDX-License-Identifier: MIT */
/*
 * Demangles names of C++, Rust (legacy and v0), D and OCaml. The first characters select the
 * language. libiberty does the rest, except for OCaml. A name whose demangled form would exceed
 * LIMIT_NAME_BYTES stays mangled: a few bytes can expand without limit.
 */
#ifndef LIBSYM_SYMBOLS_DEMANGLE_H
#define LIBSYM_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <string.h>

#include "libsym/base/buf.h"

/* May this be a mangled name? Cheap. Never returns false for a mangled name. */
static inline bool demangle_is_candidate(const char *name)
{
	if (name[0] == 'c')
		return !strncmp(name, "caml", 4) && name[4] >= 'A' && name[4] <= 'Z';
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D' ||
				  name[1] == 'G' || name[1] == '_');
}

/* Appends the demangled name to `ret`. Returns false and leaves `ret` unchanged if the name is not
 * mangled, is not understood, or does not fit. */
bool demangle(const char *name, struct buf *ret);

#endif
