/* SPDX-License-Identifier: MIT */
/*
 * Decides where each mapping of a recorded process gets its names: from the live process, the file
 * on disk, or a saved perf map. Makes the symbol files for that. A mapping gets names only from
 * what it showed: the process has the same mapping now, or the file has the recorded device and
 * inode and was not written since. Does not know the bytes of a perf.data.
 */
#ifndef MAPGEN_PERFDATA_FIXUP_PLAN_H
#define MAPGEN_PERFDATA_FIXUP_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapgen/cli/message.h"
#include "mapgen/cli/options.h"
#include "mapgen/perfdata/recorded_maps.h"
#include "mapgen/perfdata/sampled_pages.h"

/* Where the names of a process's jitted code come from. */
enum code_origin {
	CODE_NOWHERE = 0,
	CODE_LIVE,  /* the live process, or its recording below --root */
	CODE_SAVED, /* a perf map that the process left, or that the user saved */
};

struct planned_process {
	int32_t pid;
	bool lives;              /* names come from the live process */
	bool other_now;          /* its id belongs to another process now */
	bool refused;            /* it lives and may not be looked at */
	bool is_dotnet;          /* else it has native images only */
	bool is_ahead;           /* NativeAOT: `code_place` says what names the methods */
	char *comm;              /* NULL when it has ended */
	size_t images;           /* files with precompiled code that got names */
	size_t methods;          /* names in these files */
	size_t native_images;    /* stripped files that got a symbol table */
	size_t native_functions; /* functions in these files */
	size_t native_unnamed;   /* those known by their bounds only */
	enum code_origin code;
	char *code_owner; /* CODE_SAVED: the owner of the map, as text */
	char *code_place; /* CODE_LIVE: how the code was read; CODE_SAVED: path of the map; else why
			     there is none */
	size_t code_names;
	size_t map_names;         /* CODE_LIVE: names of freed code from the perf map */
	uint64_t code_samples;    /* in memory with jitted code */
	uint64_t unnamed_samples; /* those in code without a name */
	uint64_t lost_samples;    /* not counted above: samples in memory with code whose names are
				     gone */
	size_t fixed;             /* mappings */
	size_t fixed_before;
	size_t left; /* managed mappings without names */
	struct failures failures;
};

struct planned_symfile {
	uint8_t id[BUILD_ID_BYTES];
	char *label;
	bool is_new; /* was not in the cache before */
	/* For a native image, by vaddr: where the vaddr ends in its file. 0 for other symbol files.
	 */
	uint64_t native_bytes;
	size_t symbols;
	size_t unnamed; /* those known by their bounds only */
};

struct planned_file;
struct sym_snapshot;

enum {
	/* Most processes that are open before their turn; each holds its jitted code. */
	PROCESSES_AHEAD = 32
};

struct fixup_plan {
	const struct options *options;
	const char *cache; /* perf's build-id cache */
	const struct sampled_pages *hits;
	bool anonymous;         /* perf maps instead of symbol files */
	int64_t recorded_until; /* seconds since 1970; INT64_MAX when unknown */
	struct planned_symfile *symfiles;
	size_t symfile_count;
	struct planned_process *processes;
	size_t process_count;
	struct planned_file *files;
	struct sym_snapshot *ahead[PROCESSES_AHEAD];
	size_t ahead_count;
};

void fixup_plan_deinit(struct fixup_plan *plan);

/* Decides about all mappings, which must be sorted. False, with a message, when nothing can be
 * done. */
bool fixup_plan_make(struct fixup_plan *plan, struct recorded_maps *maps);

#endif
