/* SPDX-License-Identifier: MIT */
/*
 * A merge in progress, and how its list is written: appended to the runtime's file, renamed over
 * it, or to another file, by the contract of perf maps. Reports what was done, and what has no
 * names. The commands merge and watch decide when.
 */
#ifndef MAPGEN_PERFMAP_MERGE_WRITE_H
#define MAPGEN_PERFMAP_MERGE_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapgen/cli/json_output.h"
#include "mapgen/cli/options.h"
#include "mapgen/perfmap/merge_lines.h"
#include "mapgen/perfmap/perfmap_file.h"

struct merge {
	const struct options *options;
	struct sym_snapshot *snapshot;
	const struct sym_symbols *symbols;
	struct sym_symbols *own_symbols; /* the merge owns the list */
	const struct sym_perf_map_info *info;
	const struct sym_jit_info *jit;
	struct failures failures;
	struct merge_counts counts;
	uint32_t write_flags;
	json_t *notes;
	/* The result, for the summary. */
	const char *action; /* "appended", "replaced", "written", "unchanged" */
	char *path;
	size_t written_lines;
	uint64_t map_bytes; /* size of the present map; 0: unknown, or none */
};

/* Subject of the failure that says why jitted code has no names. */
extern const char merge_jit_subject[];

/* The symbols to merge: enum sym_snapshot_symbols_flags. */
extern const uint32_t merge_symbols_flags;

/* Prints a line on standard error and keeps it for the JSON. */
void merge_note(struct merge *merge, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* All of these print a message when they return false. */
bool merge_find_perf_map(struct merge *merge);

/* Reports problems of the library while it read images for the list. */
void merge_add_troubles(struct merge *merge);
/* Reports where names of jitted code came from, and whether there are any. */
bool merge_add_jit_trouble(struct merge *merge);

/*
 * For --enable-perfmap: prints known defects and tells the runtime to write, unless it writes
 * already.
 */
bool merge_enable_perf_map(struct merge *merge);

/* Writes to the file of --output. */
bool merge_write_elsewhere(struct merge *merge);
/* Writes where tools look: appends or replaces. */
bool merge_write_at(struct merge *merge, const struct map_location *location);
bool merge_at_location(struct merge *merge,
		       bool (*act)(struct merge *, const struct map_location *));
void merge_done(struct merge *merge, const char *action, const char *path, size_t lines);

/* Reports that perf and BCC look inside the container first. */
void merge_say_what_hides(struct merge *merge);
void merge_say_who_must_refresh(struct merge *merge);
/* Reports a map that is too large for stock bpftrace. */
void merge_say_large_map(struct merge *merge);

/* JSON of how jitted code was read. */
json_t *merge_jit_json(const struct merge *merge);

#endif
