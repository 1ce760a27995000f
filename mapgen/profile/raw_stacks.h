/* SPDX-License-Identifier: MIT */
/*
 * Call chains as they were recorded, each kept once: addresses of one process, innermost first. A
 * million samples have some thousand different chains, so what is done for each chain is cheap.
 */
#ifndef MAPGEN_PROFILE_RAW_STACKS_H
#define MAPGEN_PROFILE_RAW_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/libsym.h"

/* Bit of an address of user space: the unwinder guessed that this is the caller. No address has
 * it: those of user space end at 2^57, those of the kernel have the bit and bit 63. */
#define RAW_ADDRESS_IS_GUESSED (1ull << 62)

struct raw_stack {
	/* 128 bits: two chains with the same do not occur, so chains are not compared. */
	uint64_t hash, more_hash;
	const uint64_t *addresses;
	uint32_t count;
	uint32_t process; /* as the caller counts */
	uint16_t end;     /* enum profile_stack_end */
	/* The stack that it was last turned into. Set by the caller. */
	uint32_t epoch, stack;
};

struct raw_stacks;

struct sym_error *raw_stacks_create(struct raw_stacks **ret) __attribute__((warn_unused_result));
void raw_stacks_destroy(struct raw_stacks *stacks);

/* Number of a chain. Errors: NO_MEMORY, LIMIT. */
struct sym_error *raw_stacks_add(struct raw_stacks *stacks, uint32_t process, uint16_t end,
				 const uint64_t *addresses, size_t count, uint32_t *ret)
	__attribute__((warn_unused_result));

/* Until the next one is added. */
struct raw_stack *raw_stacks_at(struct raw_stacks *stacks, uint32_t number);

#endif
