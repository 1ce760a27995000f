/* SPDX-License-Identifier: MIT */
/*
 * Fetching the symbols of one ELF file by its build-id, from servers of either
 * protocol, into a build-id tree. symbols_fetch.c is the only file of the
 * program that includes curl.h. What arrives is verified before it gets its
 * name; nothing else is ever left behind.
 */
#ifndef MAPGEN_SYMBOLS_FETCH_H
#define MAPGEN_SYMBOLS_FETCH_H

#include <stdint.h>

#include "libsym/libsym.h"

struct symbols_fetcher;

/* Told now and then while a server is asked; `total_bytes` is 0 while it is not known. */
struct symbols_watch {
	void (*on_bytes)(void *context, uint64_t bytes, uint64_t total_bytes);
	/* Before a line is written to standard error. */
	void (*before_message)(void *context);
	void *context;
};

/* `servers`: NULL terminated, borrowed. NULL, said, on failure. */
struct symbols_fetcher *symbols_fetcher_create(const char *const *servers, const char *tree,
					       const struct symbols_watch *watch);
/* From then on a file with a symbol table alone is taken only where nobody has one with DWARF. */
void symbols_fetcher_prefer_dwarf(struct symbols_fetcher *fetcher);
void symbols_fetcher_destroy(struct symbols_fetcher *fetcher);

enum symbols_outcome {
	SYMBOLS_OWN,     /* the image has a symbol table itself */
	SYMBOLS_HERE,    /* a debug file that fits is in the tree, or in the standard one */
	SYMBOLS_FETCHED, /* brought just now */
	SYMBOLS_MISSING, /* every server was asked and none has it */
	SYMBOLS_FAILED,  /* could not be found out, or not be kept */
	SYMBOLS_NO_ID,   /* nobody can be asked for an image without a build-id */
	SYMBOLS_OUTCOMES
};

struct symbols_result {
	enum symbols_outcome outcome;
	char *path;         /* heap: the debug file; NULL when there is none */
	const char *server; /* it came from; NULL */
	uint64_t size_bytes;
	char *reason; /* heap: with FAILED */
};

/* Whether the tree, or the one that every tool searches, has it already. `identity`: of the image,
 * an ELF file with a build-id. */
void symbols_look(const char *tree, const struct sym_identity *identity,
		  struct symbols_result *ret);

/*
 * As above, and asks the servers when it has not. A server that cannot be reached is said once and
 * not asked again: waiting for it at every image would take minutes.
 */
void symbols_fetch(struct symbols_fetcher *fetcher, const struct sym_identity *identity,
		   struct symbols_result *ret);

void symbols_result_deinit(struct symbols_result *result);

/* "own", "here", "fetched", ...: static. */
const char *symbols_outcome_text(enum symbols_outcome outcome);

#endif
