/* SPDX-License-Identifier: MIT */
/*
 * Names as BCC's tools expect them: one string, "NAME[TIER]" as the runtime's
 * perf map writes it. libsym keeps name and tier apart; each pair that is asked
 * for is joined once and lives as long as the table.
 */
#ifndef LIBSYM_BCC_LABELS_H
#define LIBSYM_BCC_LABELS_H

#include <stdbool.h>
#include <stddef.h>

struct label;

struct labels {
	struct label *table; /* open addressing, a power of two; NULL while empty */
	size_t capacity;
	size_t count;
};

/*
 * The label of `name` (which must live as long as the table) with `tier` (NULL:
 * none), shortened if asked. Without memory: `name`.
 */
const char *labels_get(struct labels *labels, const char *name, const char *tier, bool shorten);
void labels_deinit(struct labels *labels);

#endif
