/* SPDX-License-Identifier: MIT */
#include "mapgen/live/name_tally.h"

void name_tally_add(enum sym_status status, struct name_tally *tally)
{
	switch (status) {
	case SYM_RESOLVED:
		tally->named++;
		break;
	case SYM_BOUNDS_ONLY:
		tally->bounded++;
		break;
	case SYM_UNMAPPED:
		tally->unmapped++;
		break;
	case SYM_UNREADABLE:
		tally->unreadable++;
		tally->nameless++;
		break;
	default:
		tally->nameless++;
	}
}

uint64_t name_tally_nameless(const struct stack_query *queries, size_t count)
{
	uint64_t nameless = 0;

	for (size_t i = 0; i < count; i++)
		nameless += !queries[i].is_named;
	return nameless;
}
