/* SPDX-License-Identifier: MIT */
/* Names and source positions of DWARF entries, as strings in a pool. */
#ifndef LIBSYM_DWARF_DWARF_NAMES_H
#define LIBSYM_DWARF_DWARF_NAMES_H

#include <elfutils/libdw.h>

#include "libsym/dwarf/dwarf_scopes.h"
#include "libsym/symbols/symbols.h"

/*
 * A file name of the line table of `unit`. It is relative to the compilation directory unless it
 * starts with '/'. That directory can be relative, too ("./iconvdata", from -ffile-prefix-map).
 * Pseudo files
 * ("<built-in>") stay unchanged. NULL if `path` is NULL, too long, or memory runs out.
 */
const char *dwarf_names_path(struct name_pool *names, Dwarf_Die *unit, const char *path);

/* Fills the names of a scope of `unit`, and the position of the call of an inlined function. */
void dwarf_names_scope(struct name_pool *names, Dwarf_Die *unit, struct dwarf_scope *scope);

#endif
