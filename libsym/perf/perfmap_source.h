/* SPDX-License-Identifier: MIT */
/*
 * Symbols of a process from its perf maps: addresses in, names out. Knows the
 * order (of two lines that share bytes the one read later holds), tiers, and
 * what is a stub. Which files may be believed is perfmap_location's to say.
 *
 * A map grows while it is read. What is new becomes a small index over the
 * large one; small ones are joined as they get many. Readers see a list of
 * indexes that never changes; a refresh puts a new list in its place, and the
 * old one is ended when the caller says that no reader is left.
 */
#ifndef LIBSYM_PERF_PERFMAP_SOURCE_H
#define LIBSYM_PERF_PERFMAP_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_ranges.h"
#include "libsym/error.h"
#include "libsym/perf/growing_file.h"
#include "libsym/source/source.h"

struct perfmap_source;

enum {
	PERFMAP_TIER_IN_NAME = 1 /* names stay as written, and symbols have no tier */
};

/* Borrowed, except `writer`; what is kept is copied. */
struct perfmap_input {
	int fd;
	const char *path;
	/* Lines for other memory are skipped, now and in refreshes; NULL: all lines are used. */
	const struct address_ranges *only;
	/* Changes hands. What it holds back counts as the end of the file. */
	struct unflushed writer;
	struct budget_account *account; /* charged for the memory; NULL: none */
};

/* Reads whole lines of each file from its start with pread(), in the order given; keeps duplicates
 * of the descriptors, for perfmap_source_refresh(). */
struct sym_error *perfmap_source_open(const struct perfmap_input *inputs, size_t count,
				      unsigned int flags, struct perfmap_source **ret)
	__attribute__((warn_unused_result));
void perfmap_source_close(struct perfmap_source *source);

uint64_t perfmap_source_bad_lines(const struct perfmap_source *source);
size_t perfmap_source_count(const struct perfmap_source *source);

/* The i-th disjoint piece of a source that was not refreshed. Its name lives as long as the source.
 */
void perfmap_source_at(const struct perfmap_source *source, size_t i, struct sym_symbol *ret);

enum source_outcome perfmap_source_find(const struct perfmap_source *source, uint64_t address,
					struct source_match *ret);

enum perfmap_refresh {
	PERFMAP_UNCHANGED,
	PERFMAP_APPENDED,
	/* a file was replaced, or what was read of it has changed: nothing was read */
	PERFMAP_REPLACED
};

/*
 * Reads the whole lines that were appended.
 * Other threads may look up during the call, but not refresh.
 * On failure nothing changes.
 */
struct sym_error *perfmap_source_refresh(struct perfmap_source *source, enum perfmap_refresh *ret)
	__attribute__((warn_unused_result));

/* True when there are data that only readers from before the last refresh may use. */
bool perfmap_source_has_garbage(const struct perfmap_source *source);
/* Frees those data. The caller knows that there are no such readers. */
void perfmap_source_collect(struct perfmap_source *source);

DEFINE_GUARD(perfmap_source, struct perfmap_source *, perfmap_source_close)
#define AUTO_PERFMAP_SOURCE GUARDED(perfmap_source)

#endif
