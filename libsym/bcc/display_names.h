/* SPDX-License-Identifier: MIT */
/*
 * Names as BCC's tools expect them: one string, "NAME[TIER]", as in the runtime's perf map.
 * libsym keeps name and tier apart. Each pair is joined once and lives as long as the table.
 */
#ifndef LIBSYM_BCC_DISPLAY_NAMES_H
#define LIBSYM_BCC_DISPLAY_NAMES_H

#include <stdbool.h>

#include "libsym/bcc/bcc_settings.h"

struct display_name;

struct display_names {
	struct display_name *table; /* NULL while empty */
};

/*
 * The label of `name` with `tier` (NULL: none). `name` must live as long as the table.
 * `names`: the form of a managed name. `folded`: ';' becomes ':', because it separates frames in
 * folded stacks. When out of memory: `name`.
 */
const char *display_names_get(struct display_names *display_names, const char *name,
			      const char *tier, enum bcc_names names, bool folded);
void display_names_deinit(struct display_names *display_names);

#endif
