/* SPDX-License-Identifier: MIT */
#include "symsrv/resolve/known_answers.h"

#include <stdlib.h>
#include <sys/random.h>

#include "symsrv/resolve/resolve_answer.h"

/* The answers to one question, and to those before it. */
static const size_t most_bytes = (size_t)80 << 20;

/* Different for different positions. */
static uint64_t key_of(const struct known_answers *known, uint64_t position)
{
	uint64_t mixed = (position ^ known->seed) * UINT64_C(0xff51afd7ed558ccd);

	return mixed ^ mixed >> 33;
}

void known_answers_forget(struct known_answers *known)
{
	buf_deinit(&known->texts);
	free(known->list);
	address_table_deinit(&known->places);
	*known = (struct known_answers){ 0 };
}

static bool known_answers_begin(struct known_answers *known)
{
	buf_init(&known->texts, most_bytes);
	known->list = calloc(KNOWN_ANSWERS_MOST, sizeof(*known->list));
	return known->list && getrandom(&known->seed, sizeof(known->seed), 0) > 0;
}

bool known_answers_add(struct known_answers *known, uint64_t position,
		       const struct sym_answer *answer)
{
	size_t start = known->texts.size_bytes;
	struct range_slot *slot;

	if (known->count == KNOWN_ANSWERS_MOST || (!known->list && !known_answers_begin(known)))
		return false;
	slot = address_table_slot(&known->places, key_of(known, position));
	if (!slot)
		return false;
	if (slot->value)
		return true;
	if (!resolve_answer_write(&known->texts, answer))
		return false;
	slot->value = &known->list[known->count++];
	*(struct known_text *)slot->value =
		(struct known_text){ start, known->texts.size_bytes - start };
	return true;
}

const char *known_answers_find(const struct known_answers *known, uint64_t position,
			       size_t *size_bytes_ret)
{
	const struct known_text *found =
		address_table_find(&known->places, key_of(known, position));

	if (!found)
		return NULL;
	*size_bytes_ret = found->size_bytes;
	return known->texts.data + found->start;
}
