/* SPDX-License-Identifier: MIT */
#include "libsym/address_slots.h"

#include <string.h>

enum {
	SLOTS_A_SPAN = 4,
	MOST_SPANS = ADDRESS_SLOT_NONE,
	ENOUGH = 4,
	PARTS = 1 << 16 /* of the unit of a weight */
};

struct choice {
	uint64_t lost; /* of the weight of all */
	uint64_t used; /* slots that all spans would have if there were enough */
	struct address_slots slots;
};

/* What of a span one slot would hold. */
static uint64_t share_of(const struct address_span *span, unsigned int shift)
{
	uint64_t slots = ((span->start + (span->size_bytes - 1)) >> shift) - (span->start >> shift);

	return (uint64_t)span->weight * PARTS / (slots + 1);
}

static void enter(struct choice *choice, const struct address_span *spans, size_t number)
{
	const struct address_span *span = &spans[number];
	struct address_slots *slots = &choice->slots;
	uint64_t first = span->start >> slots->shift, share = share_of(span, slots->shift);
	uint64_t others = ((span->start + (span->size_bytes - 1)) >> slots->shift) - first;

	choice->used += others + 1;
	if (others > slots->mask) {
		choice->lost += (uint64_t)span->weight * PARTS - share * (slots->mask + 1);
		others = slots->mask;
	}
	for (uint64_t i = 0; i <= others; i++) {
		uint16_t *owner = &slots->spans[(first + i) & slots->mask];
		uint64_t other =
			*owner == ADDRESS_SLOT_NONE ? 0 : share_of(&spans[*owner], slots->shift);

		choice->lost += share < other ? share : other;
		if (share > other || *owner == ADDRESS_SLOT_NONE)
			*owner = (uint16_t)number;
	}
}

static void try_shift(struct choice *choice, const struct address_span *spans, size_t count)
{
	choice->lost = choice->used = 0;
	memset(choice->slots.spans, 0xff, (choice->slots.mask + 1) * sizeof(*choice->slots.spans));
	for (size_t i = 0; i < count; i++)
		enter(choice, spans, i);
}

/* From there on all spans would want one slot. */
static unsigned int highest_shift(const struct address_span *spans, size_t count)
{
	uint64_t differing = count ? spans[0].start ^ spans[count - 1].start : 0;

	return differing ? 64 - (unsigned int)__builtin_clzll(differing) : 1;
}

void address_slots_choose(const struct address_span *spans, size_t count, uint32_t most,
			  struct address_slots *ret)
{
	struct choice choice = { 0 };
	uint64_t best = UINT64_MAX;
	uint32_t slot_count = 1;

	if (count > MOST_SPANS)
		count = MOST_SPANS;
	while (count > 1 && slot_count < most && slot_count < SLOTS_A_SPAN * count)
		slot_count *= 2;
	choice.slots.mask = slot_count - 1;
	choice.slots.shift = highest_shift(spans, count);
	/* The fewest slots that do; with far more than there are it becomes no better. */
	while (best && choice.slots.shift-- && choice.used <= ENOUGH * (count + slot_count)) {
		try_shift(&choice, spans, count);
		if (choice.lost < best) {
			best = choice.lost;
			*ret = choice.slots;
		}
	}
}
