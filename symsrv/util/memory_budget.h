/* SPDX-License-Identifier: MIT */
/*
 * Memory that all requests share: what clients send, and answers that they have not read. A client
 * costs nothing to start, so without a limit a few hundred of them use all memory.
 */
#ifndef SYMSRV_UTIL_MEMORY_BUDGET_H
#define SYMSRV_UTIL_MEMORY_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct memory_budget {
	size_t most_bytes;
	atomic_size_t used_bytes;
	atomic_ullong refused; /* how often there was not enough */
};

/* A part of it. */
struct memory_share {
	struct memory_budget *budget;
	size_t bytes;
};

/* False, and nothing changes, when there is not enough. */
bool memory_share_take(struct memory_share *share, size_t bytes);
/* Gives back everything. */
void memory_share_end(struct memory_share *share);

#endif
