/* SPDX-License-Identifier: MIT */
/*
 * The joined list of a process's symbols for those who join again and again: what
 * an image or a perf map lists is kept between two joinings.
 */
#ifndef LIBSYM_SNAPSHOT_SYMBOLS_H
#define LIBSYM_SNAPSHOT_SYMBOLS_H

#include "libsym/snapshot.h"
#include "libsym/symbols.h"

/* The symbols of one image at one place. */
struct kept_list {
	char *path;
	uint64_t load_base, inode;
	uint32_t device_major, device_minor;
	int64_t touched_ns;      /* of the file that it was listed from */
	struct sym_symbols list; /* starts are addresses */
	bool in_use;             /* by the last joining */
};

/* Zero is empty. Names of what was joined last are in it. */
struct join_cache {
	struct kept_list **lists;
	size_t count, capacity;
	struct perfmap_source *perf_map; /* NULL: not read, or there is none */
	bool has_perf_map;               /* it was looked for */
};

void join_cache_deinit(struct join_cache *cache);

/* Ends what the last joining did not use. The list of the joining before must be gone. */
void join_cache_sweep(struct join_cache *cache);

/* ARGUMENT where one of the flags is none of sym_snapshot_symbols(). */
struct sym_error *snapshot_check_join(uint32_t flags);

/*
 * sym_snapshot_symbols() that reads only images which the cache does
 * not have. The list must end before the cache, and before a sweep of a later joining.
 */
struct sym_error *snapshot_join(struct sym_snapshot *snapshot, uint32_t flags,
				struct join_cache *cache, struct sym_symbols **ret)
	__attribute__((warn_unused_result));

#endif
