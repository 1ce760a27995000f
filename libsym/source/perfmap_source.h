/* SPDX-License-Identifier: MIT */
/*
 * Symbols of a process from its perf maps: addresses in, names out. Knows the
 * order (of two lines that share bytes the one read later holds), tiers, and
 * what is a stub. Which files may be believed is perf_map_place's to say.
 */
#ifndef LIBSYM_SOURCE_PERFMAP_SOURCE_H
#define LIBSYM_SOURCE_PERFMAP_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/source/source.h"

struct perfmap_source;
struct perfmap_builder;

/* Reads whole lines of each file from its start with pread(), in the order given; the descriptors
 * stay the caller's. */
struct sym_error *perfmap_source_open(const int *fds, const char *const *paths, size_t count,
				      struct perfmap_source **ret)
	__attribute__((warn_unused_result));
void perfmap_source_close(struct perfmap_source *source);

uint64_t perfmap_source_bad_lines(const struct perfmap_source *source);
size_t perfmap_source_count(const struct perfmap_source *source);

/* The i-th disjoint piece. Its name lives as long as the source. */
void perfmap_source_at(const struct perfmap_source *source, size_t i, struct sym_symbol *ret);

enum source_outcome perfmap_source_find(const struct perfmap_source *source, uint64_t address,
					struct source_match *ret);

DEFINE_GUARD(perfmap_source, struct perfmap_source *, perfmap_source_close)
#define AUTO_PERFMAP_SOURCE GUARDED(perfmap_source)

#endif
