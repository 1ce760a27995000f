/* SPDX-License-Identifier: MIT */
/*
 * Fetching over HTTP: one thread that runs every transfer. upstream.c is the
 * only file that includes curl.h. Knows retries, time-outs, redirects, which
 * addresses must not be reached and who may see credentials; refuses to know
 * what arrives.
 */
#ifndef SYMSRV_UPSTREAM_H
#define SYMSRV_UPSTREAM_H

#include "symsrv/hops.h"
#include "symsrv/store.h"
#include "symsrv/upstreams.h"

enum transfer_outcome {
	TRANSFER_GOT,     /* arrived whole, as far as HTTP can tell */
	TRANSFER_MISSING, /* the upstream says that it has none */
	TRANSFER_REFUSED, /* it does not say whether it has one */
	TRANSFER_TOO_LARGE,
	TRANSFER_DENIED,    /* an address or redirect that is not allowed */
	TRANSFER_TRANSIENT, /* may succeed later */
	TRANSFER_NO_ROOM,   /* our own disk or store is full */
	TRANSFER_WAITS, /* others that arrive hold the room: of a directory, to be copied later */
	TRANSFER_CANCELLED,
};

/* One object from one upstream, retries and redirects included. The caller keeps it until `done`.
 */
struct transfer {
	struct upstream *upstream;
	struct upstream_set *set;
	struct store *store;
	struct store_arrival
		*arrival;          /* made when the transfer has its turn, unless it was before */
	char *path;                /* heap; below the upstream's URL */
	const char *forwarded_for; /* chain for X-Forwarded-For, or NULL; lives as long as the
				      transfer */
	unsigned int depth;        /* symsrv that the request has passed */
	bool accepts_msfz;
	atomic_bool *cancel;
	_Atomic int64_t *heard_ms;               /* when bytes of an object arrived last */
	void (*done)(struct transfer *transfer); /* on the transfer thread: must not block */
	void *context;
	/* result */
	enum transfer_outcome outcome;
	char error[160];
	char unasked[HOPS_UNASKED_BYTES]; /* TRANSFER_MISSING: who did not ask all, see hops.h */
	/* the transfer thread's own */
	struct transfer *next;
	void *state;
};

struct upstream_client;

/* `own_name`: sent in Via, to recognise requests that come back to us. */
int upstream_client_create(const char *own_name, struct upstream_client **ret);
/* Cancels what is under way; every `done` is called before it returns. What is started afterwards
 * is cancelled at once. */
void upstream_client_stop(struct upstream_client *client);
/* Stops it if need be. NULL is fine. */
void upstream_client_destroy(struct upstream_client *client);
void upstream_client_start(struct upstream_client *client, struct transfer *transfer);

#endif
