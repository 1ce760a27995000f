/* SPDX-License-Identifier: MIT */
/*
 * Bringing an object into the store: one flight per object and name however many
 * wait for it, its upstreams asked in order (the next one also when the present one
 * hesitates) or side by side, everything that arrives verified before it is
 * published. A flight does not end when a waiter gives up.
 *
 * Knows neither HTTP nor who waits. Enters definite misses in the negative
 * cache: every upstream says that it has none. Never failures that may pass,
 * refusals, or what arrived and was not what was asked for.
 */
#ifndef SYMSRV_FETCH_H
#define SYMSRV_FETCH_H

#include "symsrv/negative.h"
#include "symsrv/store.h"
#include "symsrv/upstream.h"
#include "symsrv/workers.h"

enum fetch_outcome {
	FETCH_STORED,    /* it is in the store now */
	FETCH_MISSING,   /* nobody has it */
	FETCH_UNSURE,    /* nobody brought it, but not everybody said that he has none */
	FETCH_TRANSIENT, /* could not be found out, or not in time */
};

struct fetch_waiter {
	const struct key *key;
	const char *text;          /* of the key */
	const char *forwarded_for; /* or NULL */
	unsigned int depth;        /* symsrv that it has passed */
	int64_t deadline_ms;
	unsigned int state; /* in which one began to look: see negative.h */
	/* Called once, on a thread that may block. */
	void (*done)(struct fetch_waiter *waiter, enum fetch_outcome outcome);
	/* the fetcher's own */
	struct fetch_waiter *next;
	struct job job;
	enum fetch_outcome outcome;
	char unasked[HOPS_UNASKED_BYTES]; /* FETCH_UNSURE: of whom nothing is known, see hops.h */
	struct hold *hold;                /* on the object, while this one is told */
	bool asks_again;                  /* the flight it joined began before something changed */
};

struct fetcher;

/*
 * Waiters are told on `tellers`, everything that may take long (copying,
 * verifying) is done on `workers`, so that the first does not wait for the second.
 */
struct fetcher_parts {
	const char *own_name; /* among other symsrv */
	struct store *store;
	struct negative *negative;
	struct workers *tellers, *workers;
	struct upstream_client *client;
};

/* Takes the reference to the set over. */
int fetcher_create(const struct fetcher_parts *parts, struct upstream_set *set,
		   struct fetcher **ret);
/* From now on nothing is fetched: whoever joins is told TRANSIENT, and so is who waits. */
void fetcher_stop(struct fetcher *fetcher);
/* The workers and the client must have ended. */
void fetcher_destroy(struct fetcher *fetcher);

void fetcher_join(struct fetcher *fetcher, struct fetch_waiter *waiter);

/* To be called some times a second: waiters whose time is over, upstreams that hesitate. */
void fetcher_tick(struct fetcher *fetcher, int64_t now_ms);

/* A reference to the present set of upstreams; and how it is replaced (the reference is taken
 * over). */
struct upstream_set *fetcher_upstreams(struct fetcher *fetcher);
void fetcher_set_upstreams(struct fetcher *fetcher, struct upstream_set *set);

struct fetch_counts {
	size_t flights, waiters;
	unsigned long long started, joined, stored;
};
void fetcher_counts(struct fetcher *fetcher, struct fetch_counts *ret);

#endif
