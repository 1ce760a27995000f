/* SPDX-License-Identifier: MIT */
#include "libsym/address_slots.h"

#include <string.h>

enum {
	SLOTS_A_SPAN = 4,
	MOST_SPANS = ADDRESS_SLOT_NONE,
	SHIFTS = 64,
	PARTS = 1 << 16 /* of the unit of a weight */
};

struct choice {
	unsigned int shift; /* from an address to the number of its slot */
	uint64_t lost;      /* of the weight of all */
	uint16_t spans[ADDRESS_SLOTS_MOST];
};

/* What of a span one slot would hold. */
static uint64_t share_of(const struct address_span *span, unsigned int shift)
{
	uint64_t slots = ((span->start + (span->size_bytes - 1)) >> shift) - (span->start >> shift);

	return (uint64_t)span->weight * PARTS / (slots + 1);
}

static void enter(struct choice *choice, const struct address_span *spans, size_t number,
		  uint32_t slot_count)
{
	const struct address_span *span = &spans[number];
	uint64_t slot = span->start >> choice->shift, share = share_of(span, choice->shift);
	uint64_t last = (span->start + (span->size_bytes - 1)) >> choice->shift;

	if (last - slot >= slot_count) {
		choice->lost += (uint64_t)span->weight * PARTS - share * slot_count;
		last = slot + slot_count - 1;
	}
	for (; slot <= last; slot++) {
		uint16_t *owner = &choice->spans[slot % slot_count];
		uint64_t other =
			*owner == ADDRESS_SLOT_NONE ? 0 : share_of(&spans[*owner], choice->shift);

		choice->lost += share < other ? share : other;
		if (share > other || *owner == ADDRESS_SLOT_NONE)
			*owner = (uint16_t)number;
	}
}

static void try_shift(struct choice *choice, const struct address_span *spans, size_t count,
		      uint32_t slot_count)
{
	choice->lost = 0;
	memset(choice->spans, 0xff, sizeof(choice->spans));
	for (size_t i = 0; i < count; i++)
		enter(choice, spans, i, slot_count);
}

void address_slots_choose(const struct address_span *spans, size_t count, struct address_slots *ret)
{
	struct choice best = { .lost = UINT64_MAX }, choice;
	uint32_t slot_count = 1;

	if (count > MOST_SPANS)
		count = MOST_SPANS;
	while (count > 1 && slot_count < ADDRESS_SLOTS_MOST && slot_count < SLOTS_A_SPAN * count)
		slot_count *= 2;
	/* Where it does not matter the fewest slots are used. */
	for (choice.shift = SHIFTS - 1; choice.shift >= ADDRESS_SLOT_BITS && best.lost;
	     choice.shift--) {
		try_shift(&choice, spans, count, slot_count);
		if (choice.lost < best.lost)
			best = choice;
	}
	ret->shift = best.shift - ADDRESS_SLOT_BITS;
	ret->mask = (slot_count - 1) << ADDRESS_SLOT_BITS;
	ret->count = slot_count;
	memcpy(ret->spans, best.spans, sizeof(ret->spans));
}
