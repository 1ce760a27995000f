/* SPDX-License-Identifier: MIT */
/*
 * "Did you mean": finds the known word that a mistyped one is nearest to. Pure; knows neither
 * commands nor options.
 */
#ifndef MAPGEN_CLI_SUGGEST_H
#define MAPGEN_CLI_SUGGEST_H

#include <stddef.h>

struct suggestion {
	const char *typed; /* borrowed */
	size_t typed_length;
	const char *best; /* NULL: no word that was offered is near; borrowed */
	size_t best_edits;
};

/* Only the first `length` bytes of `typed` count. */
struct suggestion suggestion_of(const char *typed, size_t length);

/* The first of equally near words stays. */
void suggestion_offer(struct suggestion *suggestion, const char *word);

#endif
