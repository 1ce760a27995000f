/* SPDX-License-Identifier: MIT */
/*
 * Which servers a request has passed. X-Forwarded-For tells: every server adds
 * the address of its client, a symsrv its own name too ("_symsrv-INSTANCE"),
 * because debuginfod relays this header but not Via. Text only, no sockets.
 */
#ifndef SYMSRV_HOPS_H
#define SYMSRV_HOPS_H

#include <stdbool.h>
#include <stdint.h>

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

/* `own_name`: "symsrv-INSTANCE". `limit`: servers that it may have passed. */
void hops_read(const struct hops_request *request, const char *own_name, uint64_t limit,
	       struct hops *ret);

#endif
