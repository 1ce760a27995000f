/* SPDX-License-Identifier: MIT */
/*
 * Symbols of a process from its jitdump: addresses in, names out. Knows that
 * code moves, and that memory is used again: what holds is what was written
 * down last, by time stamp; or what held at a time, for whoever knows when he saw
 * an address. Which file it is somebody else found out.
 */
#ifndef LIBSYM_SOURCE_JITDUMP_SOURCE_H
#define LIBSYM_SOURCE_JITDUMP_SOURCE_H

#include "libsym/base/address_ranges.h"
#include "libsym/source/jitdump_lines.h"
#include "libsym/source/source.h"
#include "libsym/source/written_file.h"

struct jitdump_source;

/*
 * Reads the file with pread(); the descriptor stays the caller's, the source keeps a copy. Records
 * of other processes than `pid` (as the process counts itself; 0: any) are passed over. A file that
 * is cut is read as far as it goes.
 *
 * `only`, copied: `pid` began the dump and whoever was forked from it goes on with it. Records of
 * all of them hold, but only for that memory, and nothing keeps its name when it is moved. NULL:
 * not so.
 *
 * `writer`, taken over in any case: what the process still holds back counts as if it were written.
 *
 * Errors: IO, FORMAT (no jitdump of this process), LIMIT, NO_MEMORY.
 */
struct sym_error *jitdump_source_open(int fd, const char *path, uint32_t pid,
				      const struct address_ranges *only, struct held_back writer,
				      struct jitdump_source **ret)
	__attribute__((warn_unused_result));
void jitdump_source_close(struct jitdump_source *source);

/* What jitdump_source_refresh() found. */
enum jitdump_refresh {
	JITDUMP_UNCHANGED,
	JITDUMP_APPENDED,
	/* It is another one or was cut; or it was cut short when it was opened, and is not any
	 * more. To be opened again; the source serves on. */
	JITDUMP_REPLACED,
};

/*
 * Takes up the records that were appended; only they are read. One that is cut short waits for
 * the next time, unless all that is missing is its code. By one thread at a time, while others look
 * up. Errors: as of opening; what was known is known still.
 */
struct sym_error *jitdump_source_refresh(struct jitdump_source *source, enum jitdump_refresh *ret)
	__attribute__((warn_unused_result));

/* What look-ups that began before the last refresh may still read; to be ended when they have
 * ended, and before the next refresh. Names stay. */
bool jitdump_source_has_garbage(const struct jitdump_source *source);
void jitdump_source_collect(struct jitdump_source *source);

/* Does the file end inside a record, or in one that makes no sense? Then later ones are missing. */
bool jitdump_source_is_cut(const struct jitdump_source *source);

uint64_t jitdump_source_records(const struct jitdump_source *source);

enum source_outcome jitdump_source_find(const struct jitdump_source *source, uint64_t address,
					struct source_match *ret);

/* As it was when it was opened: safe without knowing of refreshes. */
enum source_outcome jitdump_source_find_first(const struct jitdump_source *source, uint64_t address,
					      struct source_match *ret);

/* What was known of an address at a time. */
enum jitdump_then {
	JITDUMP_THEN_UNKNOWN, /* nothing, or the times of the dump are of another clock */
	JITDUMP_THEN_NAMED,
	/* Only what came there later; it was there before it was written down, or something else
	 * was. */
	JITDUMP_THEN_LATER,
	JITDUMP_THEN_GONE, /* what lay there had left or had no name */
};

/* What lay there at a time of CLOCK_MONOTONIC. Waits for a refresh that is under way; the first
 * call after one puts all records in order. `*ret` is written for NAMED and LATER only. */
enum jitdump_then jitdump_source_find_at(struct jitdump_source *source, uint64_t address,
					 uint64_t time_ns, struct source_match *ret);

/*
 * The source line of an address to which this source gave `name`: the very text, at `time_ns`
 * (CLOCK_MONOTONIC) or as of now, for which 0 does. False where the dump says nothing of it. The
 * file's name lives as long as the source. Waits as jitdump_source_find_at().
 */
bool jitdump_source_find_line(struct jitdump_source *source, uint64_t address, uint64_t time_ns,
			      const char *name, struct source_line *ret);

DEFINE_GUARD(jitdump_source, struct jitdump_source *, jitdump_source_close)
#define AUTO_JITDUMP_SOURCE GUARDED(jitdump_source)

#endif
