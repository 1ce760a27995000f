/* SPDX-License-Identifier: MIT */
/*
 * POST /v1/resolve: names of positions in images that are given by their identity. A JSON text in,
 * a JSON text out; the images come from the store, the index or upstreams. Runs on threads that may
 * block, and calls the client back once.
 *
 *   {"modules": [{"build_id": "HEX", "addresses": [N, ...]},
 *                {"pe": "NAME", "key": "TIMESTAMP8 SIZE", "addresses": [N, ...]},
 *                {"pdb": "NAME", "key": "GUID AGE", "addresses": [N, ...]}],
 *    "deadline_ms": N, "lines": BOOL}
 *   {"complete": BOOL, "modules": [{"found": BOOL or null, "results": [ANSWER or null, ...],
 *    "image": {"pe": "NAME", "key": "TIMESTAMP8 SIZE"}, "problem": TEXT}]}
 *   ANSWER: resolve_answer.h
 *
 * Addresses are vaddrs of ELF files and rvas of PE files. "image" is that of a PDB. "found" is null
 * when it is unknown whether the image exists, also because the deadline came first; then
 * "complete" is false. It is false too when a module has a "problem": some of its results have no
 * lines or no names.
 */
#ifndef SYMSRV_RESOLVE_RESOLVE_BATCH_H
#define SYMSRV_RESOLVE_RESOLVE_BATCH_H

#include <stdatomic.h>

#include "symsrv/lookup/lookup.h"
#include "symsrv/resolve/map_processes.h"
#include "symsrv/resolve/symbol_workers.h"
#include "symsrv/util/memory_budget.h"

/* Processes that read foreign debug information. main owns them. */
struct resolve_parts {
	struct symbol_workers *processes;
	struct workers *threads; /* wait for these processes */
	struct map_processes *maps;
};

/* The largest body of a request. */
#define RESOLVE_MAX_BYTES ((size_t)1 << 20)

struct resolve {
	/* set by the client */
	const struct holdings *holdings;
	const struct resolve_parts *parts;
	const char *body; /* of the request; outlives the call */
	size_t body_bytes;
	bool is_symbolicate;       /* symbolicate.h has the texts */
	const char *forwarded_for; /* as for a look-up */
	unsigned int depth;
	bool from_peer, is_local;
	int64_t most_wait_ms;
	struct memory_share memory; /* of modules and the answer; the client ends it */
	void (*done)(struct resolve *resolve);
	/* result */
	const char *problem; /* why the request is malformed: static, or NULL */
	char *answer;        /* heap; NULL: a problem, refused, or out of memory */
	size_t answer_bytes;
	bool is_refused; /* `memory` did not suffice */
	/* of the call itself */
	struct job job;
	struct resolve_batch *batch;
	atomic_size_t pending; /* look-ups under way, and one for the start */
};

void resolve_start(struct resolve *resolve);

#endif
