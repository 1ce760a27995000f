/* SPDX-License-Identifier: MIT */
/*
 * From method and raw path to what is meant. Knows which paths exist, refuses
 * to know what answers them.
 */
#ifndef SYMSRV_ROUTE_H
#define SYMSRV_ROUTE_H

#include "symsrv/key.h"

enum route_kind {
	ROUTE_NOT_FOUND, /* no such path */
	ROUTE_PROBE, /* what SSQP clients ask for on the way (file.ptr, index2.txt, ...): not here,
			without a look */
	ROUTE_BAD,   /* malformed */
	ROUTE_SSQP,
	ROUTE_DEBUGINFOD,
	ROUTE_METADATA,
	ROUTE_HEALTH,
	ROUTE_READY,
	ROUTE_METRICS,
	ROUTE_VERSION,
	ROUTE_PAGE,
	ROUTE_KIND_COUNT
};

struct route {
	enum route_kind kind;
	struct key key;      /* ROUTE_SSQP, ROUTE_DEBUGINFOD */
	const char *section; /* section of an ELF file; else NULL */
};

/* The path of a request target, its query behind it. RFC 9112, 3.2.2: a server must take the form
 * with scheme and host too. */
const char *route_path(const char *target);

/* Room that route_parse() wants for a path of `path_bytes`. */
size_t route_room_bytes(size_t path_bytes);

/* `path`: as it came over the wire, without the query. Strings of the route point into `room`. */
void route_parse(const char *path, char *room, struct route *ret);

/* "ssqp", "debuginfod", "metrics", ...: static. */
const char *route_kind_text(enum route_kind kind);

#endif
