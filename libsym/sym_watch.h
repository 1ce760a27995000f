/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: watching a process.
 */
#ifndef LIBSYM_SYM_WATCH_H
#define LIBSYM_SYM_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sym_snapshot;
struct sym_snapshot_opts;
struct sym_symbols;

/**
 * A process that is looked at again and again, each look reading only what
 * is new. For one thread at a time.
 */
struct sym_watch;

/**
 * Begins with a snapshot; the first sym_watch_refresh() reads. Options and errors as for
 * sym_snapshot_open(), except that a recorded process cannot be watched (SYM_ERROR_ARGUMENT).
 *
 * @param flags what sym_watch_symbols() is to have, as for sym_snapshot_symbols()
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_watch_open(int32_t pid,
							const struct sym_snapshot_opts *opts,
							uint32_t flags, struct sym_watch **ret);
SYM_API void sym_watch_close(struct sym_watch *watch);

/** What a look found. */
struct sym_watch_change {
	size_t size;
	uint32_t images;  /**< 1: other images are mapped, or this was the first look */
	uint32_t symbols; /**< 1: the list of symbols is another one */
	uint64_t added;   /**< symbols that were not in the list before, name and tier included */
	uint64_t removed; /**< symbols of the list before that are not in this one */
};

/**
 * Looks again. What a runtime that has to be asked tells between two looks is received by a thread
 * of the watch's, as sym_resolver_refresh() says. What sym_watch_snapshot() and sym_watch_symbols()
 * gave out before has ended, and with it everything that was made from it.
 *
 * On failure nothing has ended or changed, and a later look may succeed; SYM_ERROR_STALE and
 * SYM_ERROR_NOT_FOUND mean that the process has ended or called exec(). What its runtime had told
 * before that and no look has taken yet is in one that succeeds, once.
 *
 * @param change may be NULL
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_watch_refresh(struct sym_watch *watch,
							   struct sym_watch_change *change);

/** The process as of the last look, for what is not symbols: its images, its perf map, how its
 * jitted code was read. */
SYM_API struct sym_snapshot *sym_watch_snapshot(const struct sym_watch *watch);

/**
 * All symbols as of the last look, disjoint, as sym_snapshot_symbols() gives them with the flags of
 * sym_watch_open(); NULL before the first.
 *
 * Where jitted code is read from the runtime, a perf map that the process writes too is
 * read once only.
 */
SYM_API const struct sym_symbols *sym_watch_symbols(const struct sym_watch *watch);

#ifdef __cplusplus
}
#endif

#endif
