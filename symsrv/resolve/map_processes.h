/* SPDX-License-Identifier: MIT */
/*
 * Maps of PE images, each made by a process of its own (symbol_child.h). A process that crashes, or
 * uses up its memory or CPU time, makes no map, and nothing else happens.
 */
#ifndef SYMSRV_RESOLVE_MAP_PROCESSES_H
#define SYMSRV_RESOLVE_MAP_PROCESSES_H

#include <stdatomic.h>

#include "symsrv/lookup/derived_object.h"
#include "symsrv/util/log.h"

struct map_processes {
	struct map_maker maker;
	const char *program; /* as for symbol_workers_create() */
	struct {
		atomic_ullong made;
		atomic_ullong unmade; /* images without a map of all their methods */
		atomic_ullong failed; /* no process could be started, or it ended or was late */
	} counts;
	struct log_limit unmade_lines, failed_lines;
};

/* `program` outlives it. */
void map_processes_init(struct map_processes *processes, const char *program);

#endif
