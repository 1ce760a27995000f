/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: a live process, refreshed at a bounded cost.
 */
#ifndef LIBSYM_SYM_LIVE_H
#define LIBSYM_SYM_LIVE_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sym_answer;
struct sym_jit_info;
struct sym_result;
struct sym_snapshot;
struct sym_snapshot_opts;
struct sym_symbols;

/**
 * A process that is looked at again and again while it compiles, loads, unloads, calls exec() and
 * ends.
 *
 * It is a snapshot, a resolver, and a policy when to refresh them.
 * Use it from one thread at a time.
 */
struct sym_live;

/** The time that may be spent on refreshes. Several objects may share one. Start with all zero. */
struct sym_live_budget {
	int64_t saved_ns;
	uint64_t counted_ns;
};

enum sym_live_flags {
	/** Follow exec(), but not another process that gets the id. */
	SYM_LIVE_SAME_PROCESS = 1 << 0
};

/** Options of a live process; 0 in a field selects the default. */
struct sym_live_opts {
	size_t size;            /**< sizeof(struct sym_live_opts) */
	uint32_t flags;         /**< enum sym_live_flags */
	uint32_t share_percent; /**< of the time, for refreshes; default: 25 */
	uint32_t interval_ms;   /**< between two refreshes, at least; default: 50 */
	/** How long a look-up may wait for code that the runtime has just compiled; default: 0. */
	uint32_t wait_ms;
	/** For the snapshots; NULL: the defaults. With a root: a recorded process, which never
	 * changes. The struct is copied; what it points to must outlive the object. */
	const struct sym_snapshot_opts *snapshot;
	const char *core; /**< path of a core file to use in place of a PID; NULL: none */
	struct sym_live_budget *budget; /**< shared with other objects; NULL: its own */
	/** A clock that never goes back, in ns; NULL: CLOCK_MONOTONIC. */
	uint64_t (*clock_ns)(void *context);
	void *clock_context; /**< passed to `clock_ns` */
};

/**
 * Opens a process and takes the first snapshot.
 *
 * @param pid  As for sym_snapshot_open(); ignored with sym_live_opts.core.
 * @param opts  Copied. NULL selects the defaults.
 * @param ret  The object; close it with sym_live_close().
 *
 * Errors: as for sym_snapshot_open() and sym_snapshot_open_core().
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_live_open(int32_t pid, const struct sym_live_opts *opts, struct sym_live **ret);

/**
 * Closes a live process, with its snapshot, its resolver and their names.
 *
 * @param live  NULL is accepted.
 */
SYM_API void sym_live_close(struct sym_live *live);

/* ------------------------------------------------------------------------
 * Resolving
 * ------------------------------------------------------------------------ */

/**
 * Resolves addresses, as sym_resolver_resolve_at() does.
 *
 * Refreshes first if a refresh is due.
 * Refreshes and resolves again when code has no name that it may have got since.
 * Answers live until the result is used again.
 * Names live until the process has changed twice: see sym_resolver_refresh() and
 * sym_live_generation().
 *
 * @param times_ns  As for sym_resolver_resolve_at(); may be NULL.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_live_resolve(struct sym_live *live,
							  const uint64_t *addresses,
							  const uint64_t *times_ns, size_t count,
							  struct sym_result *result);

/**
 * Resolves addresses without a refresh.
 *
 * Call sym_live_update() before; then the answers to several calls are of one moment.
 *
 * @param times_ns  As for sym_resolver_resolve_at(); may be NULL.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_live_resolve_now(struct sym_live *live, const uint64_t *addresses, const uint64_t *times_ns,
		     size_t count, struct sym_result *result);

/** Returns 1 when an answer without a name may get one by a refresh. */
SYM_API int sym_live_may_be_new(const struct sym_answer *answer);

/**
 * Refreshes if a refresh is due.
 *
 * @param missed  1: a name is missing that a refresh may find.
 * @return 1: something new was found. 0: nothing has changed, or no refresh was due.
 */
SYM_API int sym_live_update(struct sym_live *live, int missed);

/**
 * Returns the process that had the id at a time.
 *
 * It is `live`, or the process before it.
 * The process before is never refreshed.
 * It lives until `live` is closed, or until another process gets the id.
 *
 * @param time_ns  CLOCK_MONOTONIC, in ns; 0: now.
 */
SYM_API struct sym_live *sym_live_at(struct sym_live *live, uint64_t time_ns);

/**
 * Returns 1 when the process had not started at a time.
 *
 * @param time_ns  CLOCK_MONOTONIC, in ns; 0: now, and the result is 0.
 */
SYM_API int sym_live_is_before(const struct sym_live *live, uint64_t time_ns);

/**
 * Sets whether addresses come from the past, such as from a file.
 *
 * Then a refresh is due only when a name is missing: code that has a name cannot be newer.
 *
 * @param is_past  0 at first.
 */
SYM_API void sym_live_set_past(struct sym_live *live, int is_past);

/* ------------------------------------------------------------------------
 * State
 * ------------------------------------------------------------------------ */

/**
 * Returns the snapshot of the last refresh.
 *
 * It lives until the next call of a function of this object that may refresh.
 */
SYM_API struct sym_snapshot *sym_live_snapshot(const struct sym_live *live);

/**
 * Counts the refreshes that replaced something.
 *
 * They replace the snapshot, read a perf map again, or find another program.
 */
SYM_API uint64_t sym_live_generation(const struct sym_live *live);

/**
 * Reports how the runtime's jitted code was read by the last refresh.
 *
 * @param ret  As for sym_snapshot_jit(); it lives until the next refresh.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_live_jit(struct sym_live *live,
						      const struct sym_jit_info **ret);

/**
 * Returns 1 when an event session is open.
 *
 * In it the runtime reports what it compiles, until the object is closed.
 */
SYM_API int sym_live_has_session(const struct sym_live *live);

/**
 * Refreshes while nothing is resolved.
 *
 * Then compiled code has names after the process has ended.
 */
SYM_API void sym_live_idle(struct sym_live *live);

/** Returns the milliseconds until sym_live_idle() should be called; -1: never. */
SYM_API int32_t sym_live_next_ms(const struct sym_live *live);

/* ------------------------------------------------------------------------
 * All symbols
 * ------------------------------------------------------------------------ */

/** The changes since the previous list of symbols. */
struct sym_live_change {
	size_t size;      /**< sizeof(struct sym_live_change), set by the caller */
	uint32_t images;  /**< 1: other images are mapped, or this is the first list */
	uint32_t symbols; /**< 1: the list has changed */
	uint64_t added;   /**< symbols that are not in the previous list; names and tiers count */
	uint64_t removed; /**< symbols of the previous list that are not in this one */
};

/**
 * Refreshes now and lists all symbols, disjoint, as sym_snapshot_symbols() does.
 *
 * Only new data are read.
 * On failure the previous list stays.
 *
 * @param flags  enum sym_snapshot_symbols_flags.
 * @param ret  The list; it lives until the next call of this function.
 * @param change  May be NULL.
 *
 * Errors: STALE and NOT_FOUND when the process has ended or called exec(). One call before that
 * lists what its runtime last reported.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_live_symbols(struct sym_live *live, uint32_t flags,
							  const struct sym_symbols **ret,
							  struct sym_live_change *change);

#ifdef __cplusplus
}
#endif

#endif
