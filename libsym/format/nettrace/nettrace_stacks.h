/* SPDX-License-Identifier: MIT */
/*
 * The stacks of a nettrace stream since its last sequence point, by their number.
 *
 *   StackBlock: u32 first number, u32 count, then each: u32 size in bytes, addresses
 */
#ifndef LIBSYM_FORMAT_NETTRACE_NETTRACE_STACKS_H
#define LIBSYM_FORMAT_NETTRACE_NETTRACE_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/base/reader.h"

struct nettrace_stack {
	uint32_t number;
	uint32_t size_bytes;
	size_t offset; /* into the bytes of all */
};

struct nettrace_stacks {
	struct nettrace_stack *items; /* ascending by number */
	size_t count, capacity;
	struct buf bytes;
};

void nettrace_stacks_init(struct nettrace_stacks *stacks);
void nettrace_stacks_deinit(struct nettrace_stacks *stacks);

/* A sequence point: events refer only to stacks behind it. */
void nettrace_stacks_clear(struct nettrace_stacks *stacks);

/* Takes a block; only the stacks before the fault if it is malformed. Returns false if out of
 * memory. */
bool nettrace_stacks_read(struct nettrace_stacks *stacks, struct reader block);

/* NULL: no stack has this number. */
const uint8_t *nettrace_stacks_find(const struct nettrace_stacks *stacks, uint32_t number,
				    size_t *size_bytes_ret);

#endif
