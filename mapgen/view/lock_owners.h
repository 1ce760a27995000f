/* SPDX-License-Identifier: MIT */
/*
 * Where the owner of a lock was while others waited for it: the stacks of its CPU samples and waits
 * in that time. Who the owner is follows from the events: when a wait begins the runtime says it,
 * and a thread whose wait ends is the next one.
 */
#ifndef MAPGEN_VIEW_LOCK_OWNERS_H
#define MAPGEN_VIEW_LOCK_OWNERS_H

#include "mapgen/profile/event_report.h"
#include "mapgen/profile/profile.h"

struct owner_place {
	const struct event_row *lock;
	uint32_t where;     /* frame, as event_origins_where() finds it */
	uint32_t innermost; /* managed frame; FRAME_NONE: the same function */
	uint64_t time_ns;   /* of all waiters */
};

struct lock_owners {
	struct owner_place *places; /* by lock, largest time first */
	size_t count, capacity;
};

/* From the spans of the profile; empty when it keeps none. Errors: NO_MEMORY. */
struct sym_error *lock_owners_make(const struct profile *profile, struct lock_owners *ret)
	__attribute__((warn_unused_result));
void lock_owners_deinit(struct lock_owners *owners);

/* The place with the most time, and its share of the time in which the owner was seen. NULL: the
 * owner was not seen. */
const struct owner_place *lock_owners_find(const struct lock_owners *owners,
					   const struct event_row *lock, double *share_ret);

#endif
