/* SPDX-License-Identifier: MIT */
/*
 * Which mapping of a recorded process gets its names from what: the live
 * process, the file on disk, a saved perf map. Makes the stand-ins for that. A
 * mapping is given names only where what it shows is what they came from: the
 * process has the very same mapping now, or the file has the recorded device and
 * inode and was not written since. Knows nothing of perf.data's bytes.
 */
#ifndef MAPGEN_NAME_PLAN_H
#define MAPGEN_NAME_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mapgen/message.h"
#include "mapgen/options.h"
#include "mapgen/profile/recorded_hits.h"
#include "mapgen/profile/recorded_maps.h"

/* Where the names of a process's jitted code come from. */
enum code_origin {
	CODE_NOWHERE = 0,
	CODE_LIVE,  /* the process itself, or its recording below --root */
	CODE_SAVED, /* a perf map that was left or kept */
};

struct planned_process {
	int32_t pid;
	bool lives;              /* names come from it */
	bool other_now;          /* its id is another process's now */
	bool refused;            /* it is there and may not be looked at */
	bool is_dotnet;          /* else it has nothing but native images */
	bool is_ahead;           /* NativeAOT: `code_place` says what names the methods */
	char *comm;              /* NULL when it is gone */
	size_t images;           /* files with precompiled code that were named */
	size_t methods;          /* names in them */
	size_t native_images;    /* stripped files that got a symbol table */
	size_t native_functions; /* in them */
	size_t native_unnamed;   /* of these told by their bounds */
	enum code_origin code;
	char *code_place; /* CODE_LIVE: the way; CODE_SAVED: the path of the map; else why not */
	size_t code_names;
	size_t map_names;         /* CODE_LIVE: of what the process had before, from its perf map */
	uint64_t code_samples;    /* in memory with jitted code */
	uint64_t unnamed_samples; /* of these in code without a name */
	uint64_t lost_samples; /* beside these: in memory with code of which there are no names */
	size_t fixed;          /* mappings */
	size_t fixed_before;
	size_t left; /* managed mappings without names */
	struct failures failures;
};

struct planned_standin {
	uint8_t id[BUILD_ID_BYTES];
	char *label;
	bool is_new; /* was not in the cache */
	/* Of a native image, by vaddr: where that ends in its file. 0 for any other stand-in. */
	uint64_t native_bytes;
	size_t symbols;
	size_t unnamed; /* of these told by their bounds */
};

struct planned_file;

struct name_plan {
	const struct options *options;
	const char *cache; /* directory of build-ids */
	const struct recorded_hits *hits;
	bool anonymous;         /* perf maps instead of stand-ins */
	int64_t recorded_until; /* seconds since 1970; INT64_MAX when unknown */
	struct planned_standin *standins;
	size_t standin_count;
	struct planned_process *processes;
	size_t process_count;
	struct planned_file *files;
};

void name_plan_deinit(struct name_plan *plan);

/* Decides about all mappings, which must be sorted. False, said, when nothing can be done. */
bool name_plan_make(struct name_plan *plan, struct recorded_maps *maps);

#endif
