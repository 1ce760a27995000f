/* SPDX-License-Identifier: MIT */
/*
 * Which servers a request has passed. X-Forwarded-For tells: every server adds
 * the address of its client, a symsrv its own name too ("_symsrv-INSTANCE"),
 * because debuginfod relays this header but not Via. Text only, no sockets.
 *
 * And which of them did not ask all its upstreams: a 404 of a symsrv that was
 * called back in a ring, that is one server too far, or whose upstreams did not
 * say whether they have the object, has the header x-symsrv-unasked with its
 * name. The miss is certain only for the server so named, which asks itself;
 * for everybody else it says nothing.
 */
#ifndef SYMSRV_HOPS_H
#define SYMSRV_HOPS_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/buf.h"

/* Headers of which there may be several lines: RFC 9110, 5.3, they are one list. */
struct hops_lines {
	struct buf forwarded, via;
};

/* Notes one line of any header. */
void hops_take(struct hops_lines *lines, const char *name, const char *value);

struct hops_request {
	const char *forwarded, *via; /* headers, or NULL */
	const char *client;          /* its address */
};

struct hops {
	/* It has not been here before, nor passed too many others, and its header is one that
	 * servers write. */
	bool may_go_on;
	unsigned int depth; /* how many symsrv it has passed */
	char *chain;        /* heap, what to send as X-Forwarded-For; NULL: may not go on, or no
			       memory */
};

#define HOPS_UNASKED_HEADER "x-symsrv-unasked"
/* A list of names, "" when it is empty. One that has no more room stays what it is. */
#define HOPS_UNASKED_BYTES 256

/* Adds the names of a header of the other side, `but` (or NULL) left out; what is no name becomes
 * one that nobody has. */
void hops_add_unasked(char list[HOPS_UNASKED_BYTES], const char *names, const char *but);

/*
 * Whether a symsrv of the list was not asked because it is in the chain of one
 * request, and is not in that of another: that one's answer may be a better one.
 */
bool hops_differ(const char *unasked, const char *chain, const char *other_chain);

/* `own_name`: "symsrv-INSTANCE". `limit`: servers that it may have passed. */
void hops_read(const struct hops_request *request, const char *own_name, uint64_t limit,
	       struct hops *ret);

#endif
