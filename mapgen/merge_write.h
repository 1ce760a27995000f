/* SPDX-License-Identifier: MIT */
/*
 * A merge under way, and how its list is written: appended to the runtime's own file, put in its
 * place, or elsewhere, by the contract of perf maps. Says what was done, and what of the process
 * has no names. The commands merge and watch decide when.
 */
#ifndef MAPGEN_MERGE_WRITE_H
#define MAPGEN_MERGE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapgen/json_output.h"
#include "mapgen/merge_lines.h"
#include "mapgen/options.h"
#include "mapgen/perf_map_file.h"
#include "mapgen/relative_map.h"

struct merge {
	const struct options *options;
	struct map_maker maker;
	struct sym_snapshot *snapshot;
	const struct sym_symbols *symbols;
	struct sym_symbols *own_symbols; /* where the list is the merge's own */
	const struct sym_perf_map_info *info;
	const struct sym_jit_info *jit;
	char *cache_trouble; /* why relative maps are not kept */
	bool unsaved;        /* a map could not be kept, and this was said */
	struct failures failures;
	struct merge_counts counts;
	uint32_t write_flags;
	json_t *notes;
	/* What was done. */
	const char *action; /* "appended", "replaced", "written", "unchanged" */
	char *path;
	size_t written_lines;
};

/* Of the failure that says why jitted code has no names. */
extern const char merge_jit_subject[];

/* What of a process is merged: enum sym_snapshot_symbols_flags. */
extern const uint32_t merge_symbols_flags;

/* Says a line on standard error, and keeps it for the JSON. */
void merge_note(struct merge *merge, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says a failure (heap text, ended) that ends the command; false for the caller to hand on. */
bool merge_fail(char *reason);

/* All of these say what failed, where they return false. */
bool merge_find_perf_map(struct merge *merge);

/* What the library met while it read the images for the list. */
void merge_add_troubles(struct merge *merge);
/* Which way served for jitted code, and whether there is any name for it. */
bool merge_add_jit_trouble(struct merge *merge);

/*
 * With --enable-perfmap: says what is known to go wrong, and has the runtime begin to write, unless
 * it writes already.
 */
bool merge_enable_perf_map(struct merge *merge);

/* To the file of --output. */
bool merge_write_elsewhere(struct merge *merge);
/* Where tools look: appends or replaces. */
bool merge_write_at(struct merge *merge, const struct map_location *location);
bool merge_at_location(struct merge *merge,
		       bool (*act)(struct merge *, const struct map_location *));
void merge_done(struct merge *merge, const char *action, const char *path, size_t lines);

/* perf and BCC look inside the container first. */
void merge_say_what_hides(struct merge *merge);
void merge_say_who_must_refresh(struct merge *merge);

/* How jitted code was read. */
json_t *merge_jit_json(const struct merge *merge);

#endif
