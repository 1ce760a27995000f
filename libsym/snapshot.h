/* SPDX-License-Identifier: MIT */
/*
 * A process at one moment: who it is (process.h), what is mapped
 * (address_space.h), and which images that makes. Opens every mapped file once
 * and reads a few KB of it; everything more is read when somebody asks. Does
 * not change once it is open, except for sym_snapshot_perf_map().
 */
#ifndef LIBSYM_SNAPSHOT_H
#define LIBSYM_SNAPSHOT_H

#include "libsym/address_space.h"
#include "libsym/error.h"
#include "libsym/live_code.h"
#include "libsym/module.h"
#include "libsym/perf_map_place.h"
#include "libsym/process.h"
#include "libsym/runtime_info.h"
#include "libsym/source/jitdump_source.h"
#include "libsym/source/perfmap_source.h"

struct sym_snapshot {
	struct process *process;
	struct address_space *space;
	/* Lines by which an image is loaded; the others of a file only show it. One byte a mapping.
	 */
	uint8_t *is_placed;
	struct sym_image **modules;
	size_t module_count;
	size_t module_capacity;
	struct image **images; /* one a file; owned; NULL where it could not be opened */
	size_t image_count;
	char **relative_map_dirs; /* NULL terminated; NULL for none */
	struct runtime_info runtime;
	struct sym_process_info info;
	enum sym_jit_way jit; /* as asked for */
	sym_fetch_fn *fetch;  /* likewise */
	void *fetch_context;
	struct live_code_slot live_code;
	struct perf_map_place place; /* of the last sym_snapshot_perf_map() */
	bool has_place;
	struct sym_load_check load_check; /* of the last sym_snapshot_load_check() */
};

void load_check_deinit(struct sym_load_check *check);

/* Does what was asked for include this way? */
bool snapshot_uses_runtime(const struct sym_snapshot *snapshot);
bool snapshot_uses_perf_map(const struct sym_snapshot *snapshot);

/*
 * The first mapping of the runtime's own ELF image, NULL when there is none. In a single-file
 * application other mappings of the same file may lie below it.
 */
const struct sym_mapping *snapshot_runtime_mapping(const struct sym_snapshot *snapshot);

/*
 * Finds and reads the perf maps that may be believed. *ret is NULL when there is
 * none; then `why` may say what is wrong with one that is there.
 */
struct sym_error *snapshot_read_perf_map(const struct sym_snapshot *snapshot, struct buf *why,
					 struct perfmap_source **ret)
	__attribute__((warn_unused_result));

/*
 * Opens the jitdump that the process writes: the one whose first page it has mapped, as jits
 * do to tell perf. *ret is NULL when there is none; then `why` may say what is wrong with one
 * that is there.
 */
struct sym_error *snapshot_read_jitdump(const struct sym_snapshot *snapshot, struct buf *why,
					struct jitdump_source **ret)
	__attribute__((warn_unused_result));

#endif
