/* SPDX-License-Identifier: MIT */
/*
 * The joined list of a process's symbols, for repeated joins: the lists of images and of the perf
 * map are kept in between.
 */
#ifndef LIBSYM_SNAPSHOT_SNAPSHOT_SYMBOLS_H
#define LIBSYM_SNAPSHOT_SNAPSHOT_SYMBOLS_H

#include "libsym/snapshot/snapshot.h"
#include "libsym/symbols/symbols.h"

/* The symbols of one image at one place. */
struct kept_list {
	char *path;
	uint64_t load_base, inode;
	uint32_t device_major, device_minor;
	int64_t touched_ns;      /* of the listed file */
	struct sym_symbols list; /* starts are addresses */
	bool in_use;             /* by the last join */
};

/* Zero is empty. It owns the names of the last join. */
struct join_cache {
	struct kept_list **lists;
	size_t count, capacity;
	struct perfmap_source *perf_map; /* NULL: not read, or none */
	bool has_perf_map;               /* it was searched */
};

void join_cache_deinit(struct join_cache *cache);

/* Frees what the last join did not use. The list of the join before must be destroyed first. */
void join_cache_sweep(struct join_cache *cache);

/*
 * sym_snapshot_symbols() that reads only images which are not in the cache.
 * `code`: what the runtime has reported since; NULL: the snapshot's.
 * Destroy the list before `code`, before the cache, and before a sweep of a later join.
 */
struct sym_error *snapshot_join(struct sym_snapshot *snapshot, uint32_t flags,
				const struct jitted_code *code, struct join_cache *cache,
				struct sym_symbols **ret) __attribute__((warn_unused_result));

#endif
