/* SPDX-License-Identifier: MIT */
/*
 * The order of sources.
 * A relative map comes before the tables that it was checked against: a user who names a directory
 * of maps wants their names.
 * ELF symbols come before the function table of a Go program, which has the same functions.
 * Fetching comes after everything on this machine.
 * Bounds without a name come last.
 */
#include "libsym/source/source.h"

const struct source_ops *const source_table[SOURCE_COUNT] = {
	&source_relmap,    &source_r2r, &source_ngen,    &source_elf,      &source_dwarf,
	&source_gopclntab, &source_plt, &source_fetched, &source_eh_frame,
};
