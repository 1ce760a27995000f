/* SPDX-License-Identifier: MIT */
/*
 * Call chains as they were recorded, each kept once: addresses of one process, innermost first. A
 * million samples have some thousand different chains, so what is done for each chain is cheap.
 */
#ifndef MAPGEN_PROFILE_RAW_STACKS_H
#define MAPGEN_PROFILE_RAW_STACKS_H

#include <stddef.h>
#include <stdint.h>
#include <xxhash.h>

#include "libsym/base/hash.h"
#include "libsym/libsym.h"

/* Bit of an address of user space: the unwinder guessed that this is the caller. No address has
 * it: those of user space end at 2^57, those of the kernel have the bit and bit 63. */
#define RAW_ADDRESS_IS_GUESSED (1ull << 62)

struct raw_stack {
	UT_hash_handle hh;
	/* The hash covers all but the number. Two chains with the same 128 bits do not occur, so
	 * chains are not compared. */
	XXH128_hash_t hash;
	uint32_t number, count;
	uint32_t process; /* as the caller counts */
	uint16_t end;     /* enum profile_stack_end */
	/* The stack that it was last turned into. Set by the caller. */
	uint32_t epoch, stack;
	uint64_t addresses[];
};

/* All zero at first. */
struct raw_stacks {
	struct raw_stack *table;
	struct raw_stack **items; /* by number */
	size_t count, capacity;
};

void raw_stacks_deinit(struct raw_stacks *stacks);

/* Number of a chain. Errors: NO_MEMORY, LIMIT. */
struct sym_error *raw_stacks_add(struct raw_stacks *stacks, uint32_t process, uint16_t end,
				 const uint64_t *addresses, size_t count, uint32_t *ret)
	__attribute__((warn_unused_result));

#endif
