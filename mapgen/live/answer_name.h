/* SPDX-License-Identifier: MIT */
/* The answer to an address, as a name in a text, with the functions inlined there. */
#ifndef MAPGEN_LIVE_ANSWER_NAME_H
#define MAPGEN_LIVE_ANSWER_NAME_H

#include "libsym/libsym.h"
#include "mapgen/stacktext/stack_filter.h"

/* Keeps the inlined functions of names, until answer_names_free(). Zeroed: empty. */
struct answer_names {
	struct inlined_block *blocks;
};

/* Errors: NO_MEMORY. Texts of `ret` live as long as those of `found`. */
struct sym_error *answer_names_take(struct answer_names *names, const struct stack_query *query,
				    const struct sym_answer *found, struct stack_name *ret);

void answer_names_free(struct answer_names *names);

#endif
