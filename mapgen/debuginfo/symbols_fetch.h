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

struct symbols_fetcher;

/* Called from time to time during a fetch; `total_bytes` is 0 while unknown. */
struct symbols_watch {
	void (*on_bytes)(void *context, uint64_t bytes, uint64_t total_bytes);
	/* Called before a line is written to standard error. */
	void (*before_message)(void *context);
	void *context;
};

/* `servers`: NULL terminated, borrowed. NULL, with a message, on failure. */
struct symbols_fetcher *symbols_fetcher_create(const char *const *servers, const char *tree,
					       const struct symbols_watch *watch);
/* From now on a file with only a symbol table is accepted only if no server has one with DWARF. */
void symbols_fetcher_prefer_dwarf(struct symbols_fetcher *fetcher);
/* From now on names-only files are asked for, which only symsrv has. */
void symbols_fetcher_names_only(struct symbols_fetcher *fetcher);
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

/* Whether the tree or the standard tree has the file already. `identity`: of the image, an ELF file
 * with a build-id. */
void symbols_look(const char *tree, const struct sym_identity *identity,
		  struct symbols_result *ret);

/*
 * As symbols_look(), and asks the servers when neither tree has the file. A server that cannot be
 * reached is reported once and not asked again, because waiting for it at every image would take
 * minutes.
 */
void symbols_fetch(struct symbols_fetcher *fetcher, const struct sym_identity *identity,
		   struct symbols_result *ret);

/* Look for and fetch the PDB that an assembly names. What arrives is kept only if it has the
 * identity and the checksum that the assembly records. */
void symbols_look_for_pdb(const char *tree, const struct sym_pdb_reference *pdb,
			  struct symbols_result *ret);
void symbols_fetch_pdb(struct symbols_fetcher *fetcher, const struct sym_pdb_reference *pdb,
		       struct symbols_result *ret);

void symbols_result_deinit(struct symbols_result *result);

/* "own", "here", "fetched", ...: static. */
const char *symbols_outcome_text(enum symbols_outcome outcome);

#endif
