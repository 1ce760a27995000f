/* SPDX-License-Identifier: MIT */
/*
 * From a key to an object that can be sent: store, indexed files, upstreams, in this order; for a
 * section, the debug file and then the program. Runs on threads that may block, and calls the
 * client back once.
 */
#ifndef SYMSRV_LOOKUP_LOOKUP_H
#define SYMSRV_LOOKUP_LOOKUP_H

#include "symsrv/lookup/cached_object.h"
#include "symsrv/lookup/file_index.h"
#include "symsrv/upstream/single_flight.h"

/* Everything that look-ups use. main owns it. */
struct holdings {
	const char *own_name; /* "symsrv-INSTANCE", unique among servers */
	/* The clock by which answers get old: clock_now_ms(), or that of a test. */
	int64_t (*now_ms)(void);
	struct store *store;
	struct file_index *index;
	struct lru_table *objects;
	struct negative_cache *negative;
	struct workers *workers;
	struct workers *checkers; /* for large objects whose checksum must be compared */
	struct fetcher *fetcher;
	struct tier_uploads *uploads;
	struct map_maker *map_maker;
};

enum lookup_outcome {
	LOOKUP_PENDING = 0,
	LOOKUP_FOUND,
	LOOKUP_MISSING,
	LOOKUP_TRANSIENT,
};

struct lookup {
	const struct holdings *holdings;
	struct key key;            /* its strings outlive the look-up */
	const char *section;       /* or NULL */
	const char *text;          /* its key in the table of objects: lookup_text() */
	const char *forwarded_for; /* or NULL */
	unsigned int depth;        /* number of symsrv that the request has passed */
	bool from_peer;            /* a server of the fleet asks */
	bool is_local;             /* do not ask upstreams */
	int64_t deadline_ms;
	void (*done)(struct lookup *lookup);
	/* result */
	enum lookup_outcome outcome;
	struct object *object; /* a reference, owned by the client afterwards */
	bool was_fetched;
	/* LOOKUP_MISSING: "" when it is certain, else the servers that were not asked, see
	 * proxy_loop.h. */
	char unqueried[PROXY_LOOP_UNASKED_BYTES];
	/* of the look-up itself */
	struct fetch_waiter waiter;
	struct job job;
	struct object
		*fallback;    /* used if the upstreams of this phase have no better file; or NULL */
	char *part_text;      /* key text of the file of this phase */
	char *image_text;     /* key text of the image of an r2rmap; the key may point into it */
	enum key_kind wanted; /* kind of the object that is asked for; that of `key` changes */
	struct object *made_from; /* the file that the object is to be made from, or NULL */
	unsigned int phase;
	bool was_transient;
	bool may_check;      /* runs on one of the checkers */
	bool has_file;       /* of this phase */
	unsigned int losses; /* how often it was fetched and evicted at once */
	unsigned int state;  /* number of what is here and which upstreams there are, before the
				first look */
};

#define LOOKUP_TEXT_BYTES (KEY_TEXT_BYTES + 300)

/* Returns the length. */
size_t lookup_text(const struct key *key, const char *section, char room[LOOKUP_TEXT_BYTES]);

void lookup_start(struct lookup *lookup);

/* Whether the answer is certainly "missing" without asking upstreams. */
bool lookup_is_known_missing(const struct holdings *holdings, const char *text,
			     const struct key *key, int64_t now_ms);

#endif
