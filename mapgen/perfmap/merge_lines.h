/* SPDX-License-Identifier: MIT */
/*
 * The lines that a perf map lacks, and what a list of symbols consists of. Knows no files.
 */
#ifndef MAPGEN_PERFMAP_MERGE_LINES_H
#define MAPGEN_PERFMAP_MERGE_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_table.h"
#include "libsym/libsym.h"

struct merge_counts {
	size_t images; /* images with a precompiled symbol in the list */
	size_t precompiled;
	size_t runtime; /* from the runtime's own map */
	size_t jitted;  /* reported by the runtime */
	size_t unnamed; /* functions of stripped native images */
	size_t linkage; /* NAME@plt of native images */
	size_t ahead;   /* functions of a NativeAOT program, methods included */
};

struct merge_counts merge_lines_count(const struct sym_symbols *symbols, size_t image_count);

struct merge_missing {
	char *text; /* heap; NULL when out of memory */
	size_t size_bytes;
	size_t lines;
	size_t told; /* lines of jitted code that `present` does not have */
	/* Number of symbols in `present` that are not the runtime's: precompiled methods in this
	 * form or another, and native code. */
	size_t covered;
};

/*
 * The symbols of `wanted` that `present` lacks, as lines: precompiled symbols that it does not have
 * with the same start, size and text; and jitted code, native functions without a name and linkage
 * stubs where it has nothing, or only lines that no other tool can read (`hidden`, see
 * joined_lines.h). Lines of the runtime's own map are never added, because what the runtime has
 * written since is newer.
 */
struct sym_error *merge_lines_missing(const struct sym_symbols *wanted,
				      const struct sym_symbols *present,
				      const struct address_table *hidden, uint32_t write_flags,
				      struct merge_missing *ret);

#endif
