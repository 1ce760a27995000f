/* SPDX-License-Identifier: MIT */
/*
 * The file that several debug files share (dwz, .gnu_debugaltlink). Debuggers read none of these
 * debug files without it. Knows no servers.
 */
#ifndef MAPGEN_DEBUGINFO_DWZ_FILE_H
#define MAPGEN_DEBUGINFO_DWZ_FILE_H

#include <limits.h>
#include <stdbool.h>

#include "libsym/libsym.h"

struct symbols_shared {
	char name[PATH_MAX];          /* its path by the debug file */
	struct sym_identity identity; /* its build-id */
};

/* False when the debug file shares nothing, or when the shared file exists at its path. */
bool symbols_shared_wanted(const char *debug_file, struct symbols_shared *ret);

#endif
