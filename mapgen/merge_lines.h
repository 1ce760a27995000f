/* SPDX-License-Identifier: MIT */
/*
 * What a perf map does not say already, as lines; and what a list is made of.
 * Knows no files.
 */
#ifndef MAPGEN_MERGE_LINES_H
#define MAPGEN_MERGE_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_table.h"
#include "libsym/libsym.h"

struct merge_counts {
	size_t images; /* that have a precompiled symbol in the list */
	size_t precompiled;
	size_t runtime; /* from the runtime's own map */
	size_t jitted;  /* told by the runtime itself */
	size_t unnamed; /* functions of stripped native images */
	size_t linkage; /* NAME@plt of native images */
	size_t ahead;   /* functions of a NativeAOT program, its methods among them */
};

struct merge_counts merge_lines_count(const struct sym_symbols *symbols, size_t image_count);

struct merge_missing {
	char *text; /* heap; NULL when out of memory */
	size_t size_bytes;
	size_t lines;
	size_t told; /* lines of these of jitted code that `present` does not have */
	/* Precompiled symbols that `present` has in this form or another, and lines of native code
	 * that it has: they are not the runtime's. */
	size_t covered;
};

/*
 * What `present` does not say yet, as lines: precompiled symbols of `wanted` that it
 * does not have with the same start, size and text, and where it has nothing at all, or what
 * nobody else can read (`hidden`, as of hidden_lines.h), jitted code told by the runtime, native
 * functions without a name and linkage stubs. Lines of the runtime's own map are never among them:
 * what it has written meanwhile is newer than what is in `wanted`.
 */
struct sym_error *merge_lines_missing(const struct sym_symbols *wanted,
				      const struct sym_symbols *present,
				      const struct address_table *hidden, uint32_t write_flags,
				      struct merge_missing *ret);

#endif
