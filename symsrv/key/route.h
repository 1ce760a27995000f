/* SPDX-License-Identifier: MIT */
/*
 * Turns method and raw path into a meaning. Knows which paths exist, not what answers them.
 */
#ifndef SYMSRV_KEY_ROUTE_H
#define SYMSRV_KEY_ROUTE_H

#include "symsrv/key/key.h"

enum route_kind {
	ROUTE_NOT_FOUND, /* no such path */
	ROUTE_PROBE,     /* paths that SSQP clients ask for in addition (file.ptr, index2.txt, ...):
			    never found */
	ROUTE_BAD,       /* malformed */
	ROUTE_SSQP,
	ROUTE_DEBUGINFOD,
	ROUTE_NAMES,       /* names-only files */
	ROUTE_MAPS,        /* maps of PE images */
	ROUTE_RESOLVE,     /* takes a body */
	ROUTE_SYMBOLICATE, /* takes a body */
	ROUTE_HAVE,        /* takes a body */
	ROUTE_PREFETCH,    /* takes a body */
	ROUTE_OBJECTS,     /* takes a body */
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
	struct key key;      /* ROUTE_SSQP, ROUTE_DEBUGINFOD, ROUTE_NAMES, ROUTE_MAPS */
	const char *section; /* the section of an ELF file, or NULL */
};

/* The path of a request target and the query behind it. RFC 9112, 3.2.2: a server must accept the
 * form with scheme and host too. */
const char *route_path(const char *target);

/* Room that route_parse() needs for a path of `path_bytes`. */
size_t route_room_bytes(size_t path_bytes);

/* `path`: as received, without the query. Strings of the route point into `room`. */
void route_parse(const char *path, char *room, struct route *ret);

/* Whether the route leads to an object. */
bool route_is_of_object(enum route_kind kind);

/* Returns "ssqp", "debuginfod", "metrics", ...; static. */
const char *route_kind_text(enum route_kind kind);

#endif
