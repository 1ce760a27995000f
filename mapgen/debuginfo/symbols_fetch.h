/* SPDX-License-Identifier: MIT */
/*
 * Fetches the symbols of one ELF file by its build-id, or the PDB of one assembly, from servers of
 * either protocol, into a tree of debug files. What arrives is verified before it gets its name;
 * nothing else stays behind.
 */
#ifndef MAPGEN_DEBUGINFO_SYMBOLS_FETCH_H
#define MAPGEN_DEBUGINFO_SYMBOLS_FETCH_H

#include <stdint.h>

#include "libsym/libsym.h"
#include "mapgen/cli/options.h"
#include "mapgen/cli/progress.h"

struct symbols_fetcher;

/*
 * Servers and tree are those of symbol_servers.h. With --offline no server is asked. With lines a
 * file with only a symbol table is accepted only if no server has one with DWARF. With --names-only
 * names-only files are asked for, which only symsrv has. `options` and `progress` are borrowed; no
 * progress: NULL. NULL, with a message, on failure.
 */
struct symbols_fetcher *symbols_fetcher_create(const struct options *options,
					       struct progress *progress);
const struct symbols_choice *symbols_fetcher_choice(const struct symbols_fetcher *fetcher);
void symbols_fetcher_destroy(struct symbols_fetcher *fetcher);

enum symbols_outcome {
	SYMBOLS_OWN,     /* the image has a symbol table itself */
	SYMBOLS_HERE,    /* a debug file that fits is in the tree or in the standard tree */
	SYMBOLS_FETCHED, /* downloaded now */
	SYMBOLS_MISSING, /* every server was asked and none has it */
	SYMBOLS_FAILED,  /* unknown, or the file could not be kept */
	SYMBOLS_NO_ID,   /* no server can be asked without a build-id */
	SYMBOLS_OUTCOMES
};

struct symbols_result {
	enum symbols_outcome outcome;
	char *path;         /* heap: the debug file; NULL when there is none */
	const char *server; /* its server; NULL */
	uint64_t size_bytes;
	char *reason; /* heap: with FAILED */
};

/*
 * Looks for the file in the tree and in the standard tree, then asks the servers. A server that
 * cannot be reached is reported once and not asked again, because waiting for it at every image
 * would take minutes.
 *
 * identity: of the image, an ELF file with a build-id; NULL: a PDB is wanted.
 * pdb: that an assembly names. What arrives is kept only if it has the identity and the checksum
 *   that the assembly records.
 */
void symbols_fetch(struct symbols_fetcher *fetcher, const struct sym_identity *identity,
		   const struct sym_pdb_reference *pdb, struct symbols_result *ret);

void symbols_result_deinit(struct symbols_result *result);

/* "own", "here", "fetched", ...: static. */
const char *symbols_outcome_text(enum symbols_outcome outcome);

#endif
