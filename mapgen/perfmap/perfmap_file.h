/* SPDX-License-Identifier: MIT */
/*
 * A perf map as a file that other programs write and read too: replaces it, keeps the runtime's own
 * file, and restores it. Knows inodes, owners and modes. The lines come from elsewhere;
 * runtime_map.h appends to the runtime's file.
 */
#ifndef MAPGEN_PERFMAP_PERFMAP_FILE_H
#define MAPGEN_PERFMAP_PERFMAP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "libsym/base/rights.h"

struct sym_perf_map_info;

/* Where a map is or will be. The directory is held open, because other users may create files in
 * it. */
struct map_location {
	int directory_fd;
	/* Rights of the process in whose root it lies, borrowed. The process chooses what its paths
	 * lead to, so files there are opened, created and renamed with these rights. NULL: the
	 * caller's own. */
	const struct rights *rights;
	char *name;
	char *path; /* path for messages */
};

/*
 * `path` may lead through /proc/PID/root or below `root` (NULL: none): then links are followed
 * inside that tree only.
 */
struct sym_error *map_location_open(const char *path, const char *root, const struct rights *rights,
				    struct map_location *ret);
/* Whether a path leads through /proc/PID/root. */
bool map_location_is_in_process(const char *path);
void map_location_close(struct map_location *location);

/* True when the file there is regular, and the one that the runtime is writing. */
bool map_location_holds(const struct map_location *location,
			const struct sym_perf_map_info *writer);

/* As map_location_holds(), but also true when it is unknown what is there. */
bool map_location_may_hold(const struct map_location *location,
			   const struct sym_perf_map_info *writer);

/* NULL when a regular file or nothing is there, else its type ("a symbolic link"); static. */
const char *map_location_file_type(const struct map_location *location);

struct map_owner {
	bool set; /* false: owned by the caller, like any other file */
	uid_t uid;
	gid_t gid;
};

/*
 * Replaces the file by `text`, atomically, with mode 0644. Changes nothing when the same bytes are
 * there with that owner and mode.
 */
struct sym_error *perfmap_file_replace(const struct map_location *location,
				       const struct map_owner *owner, const char *text,
				       size_t size_bytes, bool *written_ret);

/* Keeps the runtime's own file as NAME.runtime (a hard link) before it is replaced. */
struct sym_error *perfmap_file_keep(const struct map_location *location,
				    const struct sym_perf_map_info *writer);

/*
 * Restores NAME.runtime. `writer`: the file that the runtime is writing now; it must be
 * NAME.runtime. A file older than `started_s` belongs to another process.
 */
struct sym_error *perfmap_file_restore(const struct map_location *location, uid_t target_uid,
				       int64_t started_s, const struct sym_perf_map_info *writer);

#endif
