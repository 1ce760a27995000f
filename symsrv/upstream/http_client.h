/* SPDX-License-Identifier: MIT */
/*
 * Fetching over HTTP: one thread runs all transfers. Knows retries, time-outs, redirects, forbidden
 * addresses, and where credentials may be sent; does not know what arrives.
 */
#ifndef SYMSRV_UPSTREAM_HTTP_CLIENT_H
#define SYMSRV_UPSTREAM_HTTP_CLIENT_H

#include "symsrv/store/store.h"
#include "symsrv/upstream/proxy_loop.h"
#include "symsrv/upstream/upstream_set.h"

/* A request of a peer: it is not passed on to peers. */
#define PEER_HEADER "x-symsrv-peer"

enum transfer_outcome {
	TRANSFER_GOT,     /* complete, as far as HTTP shows */
	TRANSFER_MISSING, /* the upstream does not have it */
	TRANSFER_REFUSED, /* unknown whether the upstream has it */
	TRANSFER_TOO_LARGE,
	TRANSFER_DENIED,    /* an address or redirect that is not allowed */
	TRANSFER_TRANSIENT, /* may succeed later */
	TRANSFER_NO_ROOM,   /* our own disk or store is full */
	TRANSFER_WAITS,     /* other arrivals hold the room: for a directory, to be copied later */
	TRANSFER_CANCELLED,
};

/*
 * One object from one upstream, with its retries and redirects. The caller keeps it until `done`.
 */
struct transfer {
	struct upstream *upstream;
	struct upstream_set *set;
	struct store *store;
	struct store_incoming *incoming; /* created when the transfer starts, unless it exists */
	char *path;                      /* heap; relative to the upstream's URL */
	/* chain for X-Forwarded-For, or NULL; outlives the transfer */
	const char *forwarded_for;
	unsigned int depth; /* number of symsrv that the request has passed */
	bool accepts_msfz;
	atomic_bool *cancel;
	_Atomic int64_t *heard_ms;               /* when bytes last arrived */
	void (*done)(struct transfer *transfer); /* called on the transfer thread; must not block */
	void *context;
	/* result */
	enum transfer_outcome outcome;
	long status; /* of HTTP; 0: no answer */
	char error[160];
	char unqueried[PROXY_LOOP_UNASKED_BYTES]; /* TRANSFER_MISSING: the servers that did not ask
						     all upstreams, see proxy_loop.h */
	bool came_back; /* TRANSFER_MISSING: this server itself is one of them */
	/* for the transfer thread */
	STAILQ_ENTRY(transfer) next;
	void *state;
};

struct upstream_client;

/* `own_name`: sent in Via, to recognise requests that come back to this server. */
int upstream_client_create(const char *own_name, struct upstream_client **ret);
/* Cancels all transfers; every `done` is called before it returns. Transfers that are started
 * afterwards are cancelled at once. */
void upstream_client_stop(struct upstream_client *client);
/* Stops the client if it runs. NULL is allowed. */
void upstream_client_destroy(struct upstream_client *client);
void upstream_client_start(struct upstream_client *client, struct transfer *transfer);

#endif
