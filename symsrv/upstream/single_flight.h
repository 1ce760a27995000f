/* SPDX-License-Identifier: MIT */
/*
 * Fetches objects into the store. There is one flight per object and name, however many clients
 * wait for it. Its upstreams are asked in order (the next one also when the present one is slow) or
 * together, and everything is verified before it is published. A flight does not end when a waiter
 * gives up.
 *
 * Knows neither HTTP nor the clients. Enters definite misses in the negative cache: every upstream
 * says that it does not have the object. Failures that may pass, refusals, and wrong files are not
 * entered.
 */
#ifndef SYMSRV_UPSTREAM_SINGLE_FLIGHT_H
#define SYMSRV_UPSTREAM_SINGLE_FLIGHT_H

#include "symsrv/store/negative_cache.h"
#include "symsrv/store/store.h"
#include "symsrv/upstream/http_client.h"
#include "symsrv/upstream/tier_uploads.h"
#include "symsrv/util/workers.h"

enum fetch_outcome {
	FETCH_STORED,    /* it is in the store */
	FETCH_MISSING,   /* no upstream has it */
	FETCH_UNSURE,    /* no upstream sent it, and not all said that they do not have it */
	FETCH_TRANSIENT, /* unknown, or not in time */
};

struct fetch_waiter {
	const struct key *key;
	const char *text;          /* of the key */
	const char *forwarded_for; /* or NULL */
	unsigned int depth;        /* number of symsrv that it has passed */
	bool from_peer;            /* a peer asks, so peers are not asked */
	int64_t deadline_ms;
	unsigned int state; /* state when its look-up began: see negative_cache.h */
	/* Called once, on a thread that may block. */
	void (*done)(struct fetch_waiter *waiter, enum fetch_outcome outcome);
	/* for the fetcher */
	struct fetch_waiter *next;
	struct job job;
	enum fetch_outcome outcome;
	char unqueried[PROXY_LOOP_UNASKED_BYTES]; /* FETCH_UNSURE: the servers that were not asked,
						     see proxy_loop.h */
	struct hold *hold;                        /* keeps the object during the callback */
	bool asks_again; /* the flight that it joined began before something changed */
};

struct fetcher;

/*
 * Waiters are called on `tellers`; slow work (copying, verifying) is done on `workers`, so that
 * callbacks do not wait for it.
 */
struct fetcher_parts {
	const char *own_name; /* its name for other symsrv */
	struct store *store;
	struct negative_cache *negative;
	struct workers *tellers, *workers;
	struct upstream_client *client;
	struct tier_uploads *uploads; /* to the second tier of the store */
};

/* Adopts the reference to the set. */
int fetcher_create(const struct fetcher_parts *parts, struct upstream_set *set,
		   struct fetcher **ret);
/* From now on nothing is fetched: all waiters, and those that join, get TRANSIENT. */
void fetcher_stop(struct fetcher *fetcher);
/* The workers and the client must have ended. */
void fetcher_destroy(struct fetcher *fetcher);

void fetcher_join(struct fetcher *fetcher, struct fetch_waiter *waiter);

/* Call this several times a second: ends waiters whose time is over, and goes past slow upstreams.
 */
void fetcher_tick(struct fetcher *fetcher, int64_t now_ms);

/* A reference to the present set of upstreams; and how to replace the set (adopts the reference).
 */
struct upstream_set *fetcher_upstreams(struct fetcher *fetcher);
void fetcher_set_upstreams(struct fetcher *fetcher, struct upstream_set *set);

struct fetch_counts {
	size_t flights, waiters;
	unsigned long long started, joined, stored;
};
void fetcher_counts(struct fetcher *fetcher, struct fetch_counts *ret);

#endif
