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
	ADDRESS_SLOTS_MOST = 512,
	ADDRESS_SLOT_NONE = UINT16_MAX
};

struct address_span {
	uint64_t start, size_bytes; /* not 0; in ascending order, disjoint */
	uint32_t weight;            /* how much is in it */
};

struct address_slots {
	/* The slot of an address is: address >> shift & mask. */
	unsigned int shift;
	uint32_t mask;                      /* one less than there are slots */
	uint16_t spans[ADDRESS_SLOTS_MOST]; /* numbers of spans, or ADDRESS_SLOT_NONE */
};

/* Of the first 2^16 - 1 spans, in `most` slots, a power of two up to ADDRESS_SLOTS_MOST, or less.
 */
void address_slots_choose(const struct address_span *spans, size_t count, uint32_t most,
			  struct address_slots *ret);

#endif
