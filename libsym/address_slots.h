/* SPDX-License-Identifier: MIT */
/*
 * From an address to the one of a few spans that it may be in, without a search: some bits of it
 * say in which slot of a small table that span stands. Where two spans want the same slot the one
 * with more in it has it, so who finds the wrong span, or none, has to search all the same.
 */
#ifndef LIBSYM_ADDRESS_SLOTS_H
#define LIBSYM_ADDRESS_SLOTS_H

#include <stddef.h>
#include <stdint.h>

enum {
	ADDRESS_SLOTS_MOST = 64,
	ADDRESS_SLOT_BITS = 6, /* log2 of the bytes of what stands in a slot: a cache line */
	ADDRESS_SLOT_NONE = UINT16_MAX
};

struct address_span {
	uint64_t start, size_bytes; /* not 0; in ascending order, disjoint */
	uint32_t weight;            /* how much is in it */
};

struct address_slots {
	/* Where in the table the slot of an address is, in bytes: address >> shift & mask. */
	unsigned int shift;
	uint32_t mask;
	uint32_t count;                     /* of slots, at least 1 */
	uint16_t spans[ADDRESS_SLOTS_MOST]; /* numbers of spans, or ADDRESS_SLOT_NONE */
};

/* Of the first 2^16 - 1 spans. */
void address_slots_choose(const struct address_span *spans, size_t count,
			  struct address_slots *ret);

#endif
