/* SPDX-License-Identifier: MIT */
/*
 * A perf map as a file that others write and read too: putting one in place,
 * keeping the runtime's own and putting it back. Knows inodes, owners and modes;
 * the lines are made elsewhere, and adding to the runtime's own file is
 * runtime_map.h's. Failures are heap texts; NULL means that it worked.
 */
#ifndef MAPGEN_PERF_MAP_FILE_H
#define MAPGEN_PERF_MAP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sym_perf_map_info;

/* Where a map is or is to be. The directory is held open: what lies there may be anybody's. */
struct map_location {
	int directory_fd;
	char *name;
	char *path; /* to show */
};

/*
 * `path` may lead through /proc/PID/root or below `root` (NULL: none): links of
 * that tree are then followed inside of it only.
 */
char *map_location_open(const char *path, const char *root, struct map_location *ret);
void map_location_close(struct map_location *location);

/* True when a regular file of exactly this device and inode is there. */
bool map_location_holds(const struct map_location *location, uint64_t device, uint64_t inode);

/* NULL when what is there is a regular file or nothing, else what it is instead ("a symbolic
 * link"); static. */
const char *map_location_oddity(const struct map_location *location);

struct map_owner {
	bool set; /* false: the caller's file, as any other */
	uid_t uid;
	gid_t gid;
};

/*
 * Puts `text` in place of what is there, atomically, with mode 0644. Where the
 * same bytes are there with that owner and mode, nothing is touched.
 */
char *perf_map_file_replace(const struct map_location *location, const struct map_owner *owner,
			    const char *text, size_t size_bytes, bool *written_ret);

/* Keeps the runtime's own file as NAME.runtime (a hard link) before it is replaced. */
char *perf_map_file_keep(const struct map_location *location, uint64_t device, uint64_t inode);

/*
 * Puts NAME.runtime back. `writer`: what the runtime is writing now; must be
 * that file where there is one. What is older than `started_s` is another process's.
 */
char *perf_map_file_restore(const struct map_location *location, uid_t target_uid,
			    int64_t started_s, const struct sym_perf_map_info *writer);

#endif
