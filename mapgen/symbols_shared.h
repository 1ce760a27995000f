/* SPDX-License-Identifier: MIT */
/*
 * What a debug file shares with others (dwz, .gnu_debugaltlink): debuggers read
 * nothing of the one without the other. Knows no servers.
 */
#ifndef MAPGEN_SYMBOLS_SHARED_H
#define MAPGEN_SYMBOLS_SHARED_H

#include <limits.h>
#include <stdbool.h>

#include "libsym/libsym.h"

struct symbols_shared {
	char name[PATH_MAX];          /* where the debug file says that it is */
	struct sym_identity identity; /* with its build-id */
};

/* False when this debug file shares nothing, or what it shares is where it says. */
bool symbols_shared_wanted(const char *debug_file, struct symbols_shared *ret);

#endif
