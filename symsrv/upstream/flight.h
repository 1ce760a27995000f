/* SPDX-License-Identifier: MIT */
/* The parts of a fetch. Only single_flight.c and lane_result.c include this. */
#ifndef SYMSRV_UPSTREAM_FLIGHT_H
#define SYMSRV_UPSTREAM_FLIGHT_H

#include "libsym/base/hash.h"
#include "symsrv/upstream/single_flight.h"
#include "symsrv/util/log.h"

struct fetcher {
	struct fetcher_parts parts;
	pthread_mutex_t lock; /* protects everything below, and all flights */
	struct upstream_set *set;
	struct flight *flights;
	STAILQ_HEAD(, lane) suspended; /* copies that wait for room in the store */
	size_t waiter_count;
	bool is_stopping;
	struct log_limit store_lines; /* about a store that cannot be written */
	unsigned long long started, joined, stored;
};

/* The tries of one flight at one upstream. */
struct lane {
	struct flight *flight;
	struct upstream *upstream;
	unsigned int variant; /* number of the path that is tried */
	struct transfer transfer;
	struct job job;
	/* Its answer counts for all others: a peer that asks them for the fleet. */
	bool is_decisive;
	int64_t deadline_ms; /* when a copy that waits for room gives up; 0: it has not waited */
	STAILQ_ENTRY(lane) next; /* in fetcher->suspended */
};

struct flight {
	UT_hash_handle hh;
	struct fetcher *fetcher;
	struct upstream_set *set;
	struct fetch_waiter *waiters;
	char *text;
	char *place;           /* its key in the table, see place_of() */
	char *name, *spelling; /* of the key */
	char *forwarded_for;
	unsigned int depth;
	struct key key;
	_Atomic int64_t heard_ms; /* when the last lane was started, or bytes last arrived */
	unsigned int state;       /* state of the waiter that it was made for */
	size_t next_lane;         /* not started yet */
	size_t running;
	size_t own_running; /* of these, lanes of the tier and of peers */
	bool was_transient;
	char unqueried[PROXY_LOOP_UNASKED_BYTES];
	bool is_settled;
	atomic_bool cancel;
	size_t lane_count;
	struct lane lanes[];
};

#endif
