/* SPDX-License-Identifier: MIT */
#include "symsrv/key/route.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "symsrv/key/debuginfod.h"
#include "symsrv/key/percent.h"
#include "symsrv/key/ssqp.h"

static const struct {
	const char *text;
	const char *path; /* NULL: no fixed one */
} kinds[ROUTE_KIND_COUNT] = {
	[ROUTE_NOT_FOUND] = { "other", NULL },
	[ROUTE_PROBE] = { "probe", NULL },
	[ROUTE_BAD] = { "bad", NULL },
	[ROUTE_SSQP] = { "ssqp", NULL },
	[ROUTE_DEBUGINFOD] = { "buildid", NULL },
	[ROUTE_METADATA] = { "metadata", "/metadata" },
	[ROUTE_HEALTH] = { "healthz", "/healthz" },
	[ROUTE_READY] = { "readyz", "/readyz" },
	[ROUTE_METRICS] = { "metrics", "/metrics" },
	[ROUTE_VERSION] = { "version", "/version" },
	[ROUTE_PAGE] = { "page", "/" },
	[ROUTE_NAMES] = { "names", NULL },
	[ROUTE_MAPS] = { "maps", NULL },
	[ROUTE_RESOLVE] = { "resolve", "/v1/resolve" },
	[ROUTE_SYMBOLICATE] = { "symbolicate", "/symbolicate/v5" },
	[ROUTE_HAVE] = { "have", "/v1/have" },
	[ROUTE_PREFETCH] = { "prefetch", "/v1/prefetch" },
	[ROUTE_OBJECTS] = { "objects", "/v1/objects" },
};

const char *route_kind_text(enum route_kind kind)
{
	return kinds[kind].text;
}

bool route_is_of_object(enum route_kind kind)
{
	return kind == ROUTE_SSQP || kind == ROUTE_DEBUGINFOD || kind == ROUTE_NAMES ||
	       kind == ROUTE_MAPS;
}

const char *route_path(const char *target)
{
	size_t scheme = !strncasecmp(target, "http://", 7)    ? 7
			: !strncasecmp(target, "https://", 8) ? 8
							      : 0;
	const char *path = scheme ? strchr(target + scheme, '/') : target;

	return path ? path : "/";
}

size_t route_room_bytes(size_t path_bytes)
{
	return 2 * (path_bytes + 1);
}

/* WinDbg and PerfView ask for these before or after every object. The last one is the name with '_'
 * for its last letter, below the directory of the name itself. */
static bool is_probe(const char *path)
{
	static const char *const names[] = { "file.ptr", "index2.txt", "pingme.txt" };
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t length = strlen(name);
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcasecmp(name, names[i]))
			return true;
	return length > 2 && name[length - 1] == '_' &&
	       (strncasecmp(path, name, length) != 0 || path[length] != '/');
}

static void parse_ssqp(char *path, char *room, struct route *ret)
{
	if (is_probe(path))
		ret->kind = ROUTE_PROBE;
	else
		ret->kind = ssqp_parse(path, room, &ret->key) ? ROUTE_SSQP : ROUTE_NOT_FOUND;
}

/* Clients of debuginfod whose URL ends in /names get names only. What else they ask for is not
 * found, so that they do not fetch it. */
static void parse_names(const char *path, struct route *ret)
{
	if (!debuginfod_parse(path, &ret->key, &ret->section)) {
		ret->kind = ROUTE_BAD;
	} else if (ret->key.kind == KEY_DEBUGINFO && !ret->section) {
		ret->key.kind = KEY_NAMES;
		ret->kind = ROUTE_NAMES;
	}
}

/* NAME/ID/r2rmap or NAME/ID/map, with name and id of a PE image as in SSQP. */
static void parse_maps(char *path, char *room, struct route *ret)
{
	char *last = strrchr(path, '/');
	bool is_r2rmap = last && !strcmp(last, "/r2rmap");
	size_t length = strcspn(path, "/");
	char whole[3 * 256];

	if (!last || (!is_r2rmap && strcmp(last, "/map") != 0) || last == path + length ||
	    (size_t)(last - path) + length + 2 > sizeof(whole))
		return;
	snprintf(whole, sizeof(whole), "%.*s/%.*s", (int)(last - path), path, (int)length, path);
	/* The strings of the key point into `path`. */
	if (!ssqp_parse(whole, room, &ret->key) || ret->key.kind != KEY_PE)
		return;
	path[length] = 0;
	ret->key.spelling = path;
	ret->key.kind = is_r2rmap ? KEY_PE_R2RMAP : KEY_PE_MAP;
	ret->kind = ROUTE_MAPS;
}

void route_parse(const char *path, char *room, struct route *ret)
{
	size_t size_bytes = strlen(path);
	size_t length;
	size_t i;

	*ret = (struct route){ .kind = ROUTE_NOT_FOUND };
	if (!percent_decode(path, size_bytes, room, &length)) {
		/*
		 * SSQP clients give up on a server that answers such a path with anything but 404.
		 */
		if (strncmp(path, "/symbols/", 9) != 0 &&
		    strncmp(path, "/download/symbols/", 18) != 0)
			ret->kind = ROUTE_BAD;
		return;
	}
	if (!strncmp(room, "/buildid/", 9)) {
		ret->kind = !debuginfod_parse(room + 9, &ret->key, &ret->section) ? ROUTE_BAD
			    : ret->key.kind == KEY_NAMES                          ? ROUTE_NAMES
							 : ROUTE_DEBUGINFOD;
	} else if (!strncmp(room, "/names/buildid/", 15)) {
		parse_names(room + 15, ret);
	} else if (!strncmp(room, "/pe/", 4)) {
		parse_maps(room + 4, room + size_bytes + 1, ret);
	} else if (!strncmp(room, "/symbols/", 9)) {
		parse_ssqp(room + 9, room + size_bytes + 1, ret);
	} else if (!strncmp(room, "/download/symbols/", 18)) {
		parse_ssqp(room + 18, room + size_bytes + 1, ret);
	} else {
		for (i = 0; i < ROUTE_KIND_COUNT; i++)
			if (kinds[i].path && !strcmp(room, kinds[i].path))
				ret->kind = i;
	}
}
