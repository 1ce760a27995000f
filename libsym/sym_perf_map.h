/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: perf maps.
 */
#ifndef LIBSYM_SYM_PERF_MAP_H
#define LIBSYM_SYM_PERF_MAP_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sym_snapshot;
struct sym_symbols;

/* ------------------------------------------------------------------------
 * The perf map of a process
 * ------------------------------------------------------------------------ */

/** The perf map that a process writes or has left, and the paths where tools look for one. */
struct sym_perf_map_info {
	/**
	 * Path of the perf map in use; NULL when there is none that may be used.
	 * It is valid in the caller's own root: for a process in another namespace it starts with
	 * /proc/PID/root.
	 */
	const char *path;
	const char *rejected_path; /**< a map that is not used; NULL when there is none */
	/** Why it is not used: a symlink, a wrong owner, older than the process, ... */
	const char *rejected_reason;
	const char *host_path; /**< where tools on this machine look: /tmp/perf-PID.map */
	/** Where the process itself would write, as a path of the caller. Equal to host_path when
	 * the process is in no other namespace. */
	const char *target_path;
	/** Descriptor in the process through which it writes a perf map; -1: none. */
	int32_t writer_fd;
	/** 0: writer_fd is right. The process may write a map: 1: no permission to see; 2: the
	 * check failed. */
	uint32_t writer_unknown;
	uint64_t writer_inode;  /**< inode of the file of writer_fd; 0 when there is none */
	uint64_t writer_device; /**< its device */
};

/**
 * Finds the perf map of a process.
 *
 * Each call looks again.
 * Use it from one thread at a time.
 *
 * @param ret  It lives until the next call with this snapshot, or until that is closed.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_perf_map(struct sym_snapshot *snapshot, const struct sym_perf_map_info **ret);

/** Returns what is known to go wrong when this runtime writes a perf map; static; NULL: nothing. */
SYM_API const char *sym_snapshot_perf_map_known_issue(const struct sym_snapshot *snapshot);

/**
 * Requests over the diagnostics socket that the runtime writes a perf map from now on.
 *
 * This changes the process: it writes a file until it ends.
 * Each method that it compiles takes longer.
 * The library never calls this by itself.
 * When it returns, the file has all methods compiled so far, without stubs.
 *
 * Errors: UNSUPPORTED before .NET 8.
 */
SYM_API SYM_MUST_CHECK struct sym_error *
sym_snapshot_enable_perf_map(struct sym_snapshot *snapshot);

/* ------------------------------------------------------------------------
 * Perf map files
 * ------------------------------------------------------------------------ */

/**
 * Writes the file name of a perf map, "perf-PID.map".
 *
 * @param room  Receives the name and a NUL, cut where the room ends.
 * @return Length of the whole name without NUL, as snprintf() returns it.
 */
SYM_API size_t sym_perf_map_file_name(int32_t pid, char *room, size_t room_bytes);

/**
 * Reads a perf map file into a disjoint list of symbols.
 *
 * Of two overlapping lines the later one wins.
 * An incomplete last line is left out.
 *
 * @param fd  Open for reading; not closed; read from its start with pread().
 * @param ret  The list; free it with sym_symbols_destroy().
 * @param bad_lines_ret  Number of skipped lines; may be NULL.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_perf_map_read(int fd, struct sym_symbols **ret,
							   uint64_t *bad_lines_ret);

/**
 * Opens the perf map that a process has left where tools look for it.
 *
 * Every user can put a file there.
 * It must belong to root, to the caller, or to the user of the process if `root` has its status.
 * Symbolic links are not followed.
 * The process may be gone.
 * Then the caller must know that the PID was not used again since.
 *
 * @param root  As sym_snapshot_opts.root.
 * @param fd_ret  For sym_perf_map_read(); close() it. fstat() has the owner.
 *
 * Errors: PERMISSION for another owner; NOT_FOUND; UNSUPPORTED when it is not a regular file.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_perf_map_open(int32_t pid, const char *root,
							   int *fd_ret);

/** No user, for sym_perf_map_open_of(). */
#define SYM_NO_OWNER UINT32_MAX

/**
 * Opens a perf map as sym_perf_map_open() does; one more owner is accepted.
 *
 * @param owner  User id of the process; SYM_NO_OWNER when unknown.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_perf_map_open_of(int32_t pid, const char *root,
							      uint32_t owner, int *fd_ret);

#ifdef __cplusplus
}
#endif

#endif
