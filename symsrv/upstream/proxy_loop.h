/* SPDX-License-Identifier: MIT */
/*
 * The servers that a request has passed. Every server adds the address of its client to
 * X-Forwarded-For. A symsrv also adds its own name ("_symsrv-INSTANCE"), because debuginfod relays
 * this header but not Via. Text only, no sockets.
 *
 * Also the servers that did not ask all their upstreams. A symsrv sends 404 with its name in the
 * header x-symsrv-unasked when it was called back in a ring, when the chain was too long, or when
 * its upstreams did not say whether they have the object. The miss is certain only for the server
 * with this name, which asks its upstreams itself; for all others it is uncertain.
 */
#ifndef SYMSRV_UPSTREAM_PROXY_LOOP_H
#define SYMSRV_UPSTREAM_PROXY_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/buf.h"

/* Headers that may have several lines, which are one list (RFC 9110, 5.3). */
struct proxy_loop_lines {
	struct buf forwarded, via;
};

/* Records one line of any header. */
void proxy_loop_take(struct proxy_loop_lines *lines, const char *name, const char *value);

struct proxy_loop_request {
	const char *forwarded, *via; /* headers, or NULL */
	const char *client;          /* its address */
};

struct proxy_loop {
	/* The request has not been here before, has not passed too many servers, and its header is
	 * well-formed. */
	bool may_go_on;
	bool came_back;     /* the request has passed this server before */
	unsigned int depth; /* number of symsrv that it has passed */
	char *chain; /* heap, the next X-Forwarded-For; NULL: it may not go on, or out of memory */
};

#define PROXY_LOOP_UNASKED_HEADER "x-symsrv-unasked"
/* A list of names, "" when empty. When it is full, it does not change. */
#define PROXY_LOOP_UNASKED_BYTES 256

/* Adds the names of a header of the other side, except `but` (or NULL); a malformed name becomes
 * one that no server has. Returns whether `but` is among them. */
bool proxy_loop_add_unqueried(char list[PROXY_LOOP_UNASKED_BYTES], const char *names,
			      const char *but);

/*
 * Whether a symsrv of the list was not asked because the chain of one request contains it, and the
 * chain of another request does not: the answer to that one may be better.
 */
bool proxy_loop_differ(const char *unqueried, const char *chain, const char *other_chain);

/* `own_name`: "symsrv-INSTANCE". `limit`: most servers that the request may have passed. */
void proxy_loop_read(const struct proxy_loop_request *request, const char *own_name, uint64_t limit,
		     struct proxy_loop *ret);

#endif
