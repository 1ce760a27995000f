/* SPDX-License-Identifier: MIT */
/*
 * Objects that are made from other objects: names-only files from debug files or programs, maps
 * from PE images. Knows which objects they are made from and how, not where these are. The caller's
 * thread makes the former, which may take a second and some hundred megabytes for the largest
 * files, and waits for the latter.
 */
#ifndef SYMSRV_LOOKUP_DERIVED_OBJECT_H
#define SYMSRV_LOOKUP_DERIVED_OBJECT_H

#include "libsym/base/buf.h"
#include "symsrv/key/key.h"
#include "symsrv/lookup/cached_object.h"
#include "symsrv/store/store.h"

/* The kind of object that may be asked for in phase `phase` (0, 1, ...) to make an object of kind
 * `wanted`; the first one may be `wanted` itself. KEY_NONE: there is no further phase. */
enum key_kind derived_object_phase(enum key_kind wanted, unsigned int phase);

/* Whether an object of that kind can be made from another one. */
bool derived_object_is(enum key_kind wanted);

/* Makes maps of PE images. An image is anybody's, so that is done outside this process. */
struct map_maker {
	/* Appends the map. 0; -EBADMSG when there is none with all methods; or another negative
	 * errno. */
	int (*make)(struct map_maker *maker, const struct object *image, enum sym_map_format format,
		    int64_t deadline_ms, struct buf *ret);
};

struct derivation {
	struct store *store;
	struct map_maker *maker;
	const struct object *file;
	enum key_kind kind; /* of the file */
	enum key_kind wanted;
	const char *text; /* of the key of the object */
	int64_t deadline_ms;
};

/*
 * Makes the object of `wanted` from `file`, and publishes it in the store under `text`. 0; -EBADMSG
 * when it cannot be made from that file; or another negative errno.
 */
int derived_object_make(const struct derivation *derivation);

#endif
