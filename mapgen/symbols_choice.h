/* SPDX-License-Identifier: MIT */
/*
 * Which servers are asked for debug files and where these are kept, as the options and
 * the environment say. Asks nobody.
 */
#ifndef MAPGEN_SYMBOLS_CHOICE_H
#define MAPGEN_SYMBOLS_CHOICE_H

#include "mapgen/options.h"

/* Below it, .build-id is what libsym, perf and gdb search without being told. */
#define SYMBOLS_STANDARD_TREE "/usr/lib/debug"

struct symbols_choice {
	const char **servers;   /* NULL terminated */
	bool is_microsoft_only; /* nobody else is asked */
	const char *tree;
	char *words; /* private */
};

/* --server, else $DEBUGINFOD_URLS and behind these Microsoft's; --store. False, said, without
 * memory. */
bool symbols_choice_make(const struct options *options, struct symbols_choice *ret);
void symbols_choice_deinit(struct symbols_choice *choice);

static inline void guard_symbols_choice(struct symbols_choice *choice)
{
	symbols_choice_deinit(choice);
}

/* Can files be kept there? Otherwise that is said: before anything is fetched. */
bool symbols_choice_can_keep(const struct symbols_choice *choice);

#endif
