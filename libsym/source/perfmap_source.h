/* SPDX-License-Identifier: MIT */
/*
 * Symbols of a process from its perf maps: addresses in, names out. Knows the
 * order (of two lines that share bytes the one read later holds), tiers, and
 * what is a stub; where the names are is perfmap_names' to know. Which files may be believed is
 * perf_map_place's to say.
 *
 * A map grows while it is read. What is new becomes a small index over the
 * large one; small ones are joined as they get many. Readers see a list of
 * indexes that never changes; a refresh puts a new list in its place, and the
 * old one is ended when the caller says that nobody reads it any more.
 */
#ifndef LIBSYM_SOURCE_PERFMAP_SOURCE_H
#define LIBSYM_SOURCE_PERFMAP_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/address_ranges.h"
#include "libsym/error.h"
#include "libsym/source/source.h"
#include "libsym/source/written_file.h"

struct perfmap_source;

enum {
	PERFMAP_TIER_IN_NAME = 1, /* names stay as they are written, and nothing has a tier */
	PERFMAP_KEEP_NAMES = 2    /* for those who are going to want all of them: none is lost */
};

/* The caller's, but for the writer; what is kept of it is copied. */
struct perfmap_input {
	int fd;
	const char *path;
	/* Lines that tell of other memory are passed over, also of what is appended; NULL: all
	 * hold. */
	const struct address_ranges *only;
	/* Changes hands. What it holds back counts as the end of the file, and its names are kept.
	 */
	struct held_back writer;
};

/* Reads whole lines of each file from its start with pread(), in the order given; keeps duplicates
 * of the descriptors, through which names are read that are asked for later (perfmap_names.h). */
struct sym_error *perfmap_source_open(const struct perfmap_input *inputs, size_t count,
				      unsigned int flags, struct perfmap_source **ret)
	__attribute__((warn_unused_result));
void perfmap_source_close(struct perfmap_source *source);

uint64_t perfmap_source_bad_lines(const struct perfmap_source *source);
size_t perfmap_source_count(const struct perfmap_source *source);

/* The i-th disjoint piece. Its name lives as long as the source; NULL when it is lost. */
void perfmap_source_at(const struct perfmap_source *source, size_t i, struct sym_symbol *ret);

/* SOURCE_NAMELESS where the file has lost the name since it was read. */
enum source_outcome perfmap_source_find(const struct perfmap_source *source, uint64_t address,
					struct source_match *ret);

/* The same as of perfmap_source_open(), whatever has been refreshed: safe without a word to
 * anybody. */
enum source_outcome perfmap_source_find_first(const struct perfmap_source *source, uint64_t address,
					      struct source_match *ret);

/* The same, for those who do many (perfmap_first.h). */
struct perfmap_first;
const struct perfmap_first *perfmap_source_first(const struct perfmap_source *source);
struct index_view;
const struct index_view *perfmap_source_first_view(const struct perfmap_source *source);
/* And what there is now: until the next perfmap_source_collect(). */
const struct index_view *perfmap_source_view(const struct perfmap_source *source);

/* Fetches what looking up these addresses is going to need; `first` as for _find_first(). */
void perfmap_source_warm(const struct perfmap_source *source, bool first, const uint64_t *addresses,
			 size_t count);

enum perfmap_refresh {
	PERFMAP_UNCHANGED,
	PERFMAP_APPENDED,
	/* A file is not the one it was, or what was read of it has changed: nothing was taken up.
	 */
	PERFMAP_REPLACED
};

/*
 * Takes up the whole lines that the files have got since. Readers may be at work,
 * another refresh may not. On failure everything stays as it was.
 */
struct sym_error *perfmap_source_refresh(struct perfmap_source *source, enum perfmap_refresh *ret)
	__attribute__((warn_unused_result));

/* Is there something that only readers from before the last refresh may still look at? */
bool perfmap_source_has_garbage(const struct perfmap_source *source);
/* There are no such readers (those of _find_first() do not count). */
void perfmap_source_collect(struct perfmap_source *source);

DEFINE_GUARD(perfmap_source, struct perfmap_source *, perfmap_source_close)
#define AUTO_PERFMAP_SOURCE GUARDED(perfmap_source)

#endif
