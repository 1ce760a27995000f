/* SPDX-License-Identifier: MIT */
/*
 * Symbols of a process from its jitdump: addresses in, names out.
 * Code moves, and memory is used again. The latest record by time stamp wins, or the latest before
 * a given time.
 * perfmap_location.h decides which file is used.
 */
#ifndef LIBSYM_PERF_JITDUMP_SOURCE_H
#define LIBSYM_PERF_JITDUMP_SOURCE_H

#include "libsym/base/address_ranges.h"
#include "libsym/perf/growing_file.h"
#include "libsym/perf/jitdump_lines.h"
#include "libsym/source/source.h"

struct jitdump_source;

/*
 * Reads the file with pread(). The source keeps a copy of the descriptor.
 * Records of other processes than `pid` (as the process counts itself; 0: any) are skipped.
 * A truncated file is read up to its end.
 *
 * `only`, copied: the memory for which an inherited dump is used. Process `pid` began the dump and
 * its children write to it. Records of all of them are used, only for that memory, and moved code
 * loses its name. NULL: not inherited.
 *
 * `writer`, whose ownership is taken in any case: its unflushed bytes count as part of the file.
 *
 * `account`: charged with its memory; NULL: none.
 *
 * Errors: IO; FORMAT (not a jitdump of this process); LIMIT; NO_MEMORY.
 */
struct sym_error *jitdump_source_open(struct budget_account *account, int fd, const char *path,
				      uint32_t pid, const struct address_ranges *only,
				      struct unflushed writer, struct jitdump_source **ret)
	__attribute__((warn_unused_result));
void jitdump_source_close(struct jitdump_source *source);

/* The result of jitdump_source_refresh(). */
enum jitdump_refresh {
	JITDUMP_UNCHANGED,
	JITDUMP_APPENDED,
	/*
	 * It is another file, or it was truncated; or it was truncated when it was opened, and is
	 * not any more. Open it again; the source remains usable.
	 */
	JITDUMP_REPLACED,
};

/*
 * Reads the records that were appended.
 * An incomplete record waits for the next refresh, unless only its code is missing.
 * For one thread at a time; other threads may look up.
 * Errors: as of opening; known names stay.
 */
struct sym_error *jitdump_source_refresh(struct jitdump_source *source, enum jitdump_refresh *ret)
	__attribute__((warn_unused_result));

/*
 * True when there are data that only look-ups from before the last refresh may still read.
 * Collect them when those look-ups have ended, and before the next refresh. Names stay.
 */
bool jitdump_source_has_garbage(const struct jitdump_source *source);
void jitdump_source_collect(struct jitdump_source *source);

/* True when the file ends inside a record, or in an invalid one: later records are missing. */
bool jitdump_source_is_cut(const struct jitdump_source *source);

uint64_t jitdump_source_records(const struct jitdump_source *source);

enum source_outcome jitdump_source_find(const struct jitdump_source *source, uint64_t address,
					struct source_match *ret);

/* The state of an address at a past time. */
enum jitdump_then {
	JITDUMP_THEN_UNKNOWN, /* nothing, or the times of the dump are from another clock */
	JITDUMP_THEN_NAMED,
	/* Only later code is known. It was there before it was recorded, or other code was. */
	JITDUMP_THEN_LATER,
	JITDUMP_THEN_GONE, /* the code there had left, or had no name */
};

/*
 * Finds the code at an address at a time of CLOCK_MONOTONIC.
 * Waits for a running refresh. The first call after a refresh sorts all records.
 * `*ret` is written for NAMED and LATER only.
 */
enum jitdump_then jitdump_source_find_at(struct jitdump_source *source, uint64_t address,
					 uint64_t time_ns, struct source_match *ret);

/*
 * Finds the source line of an address to which this source gave `name` (the same pointer).
 * `time_ns`: CLOCK_MONOTONIC; 0: now.
 * False when the dump has no line. The file name lives as long as the source.
 * Waits as jitdump_source_find_at() does.
 */
bool jitdump_source_find_line(struct jitdump_source *source, uint64_t address, uint64_t time_ns,
			      const char *name, struct source_line *ret);

DEFINE_GUARD(jitdump_source, struct jitdump_source *, jitdump_source_close)
#define AUTO_JITDUMP_SOURCE GUARDED(jitdump_source)

#endif
