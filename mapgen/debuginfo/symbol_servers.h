/* SPDX-License-Identifier: MIT */
/*
 * Which servers are asked for debug files, and where the files are kept, by the options and the
 * environment. Sends no requests.
 */
#ifndef MAPGEN_DEBUGINFO_SYMBOL_SERVERS_H
#define MAPGEN_DEBUGINFO_SYMBOL_SERVERS_H

#include "mapgen/cli/options.h"

/* libsym, perf and gdb search .build-id below it by default. */
#define SYMBOLS_STANDARD_TREE "/usr/lib/debug"

struct symbols_choice {
	const char **servers;   /* NULL terminated */
	bool is_microsoft_only; /* no other server is asked */
	const char *tree;
	char *words; /* private */
};

/* The servers: --server, else $DEBUGINFOD_URLS and then Microsoft's; the tree: --debug-tree. False,
 * with a message, when out of memory. */
bool symbols_choice_make(const struct options *options, struct symbols_choice *ret);
void symbols_choice_deinit(struct symbols_choice *choice);

/* Returns a URL without user and password, for messages; heap. NULL when out of memory. */
char *symbol_server_without_password(const char *url);

/* Whether files can be written to the tree; false with a message. Call it before anything is
 * fetched. */
bool symbols_choice_can_keep(const struct symbols_choice *choice);

#endif
