/* SPDX-License-Identifier: MIT */
/*
 * The way from a key to an object that can be sent: store, indexed files,
 * upstreams, in this order; for a section, the debug file and then the program.
 * Runs on threads that may block; whoever asks is called back once.
 */
#ifndef SYMSRV_INQUIRY_H
#define SYMSRV_INQUIRY_H

#include "symsrv/fetch.h"
#include "symsrv/file_index.h"
#include "symsrv/object.h"

/* What answers inquiries. All belongs to main. */
struct holdings {
	const char *own_name; /* "symsrv-INSTANCE", among other symsrv */
	struct store *store;
	struct file_index *index;
	struct object_table *objects;
	struct negative *negative;
	struct workers *workers;
	struct workers *checkers; /* for large objects whose checksum must be compared */
	struct fetcher *fetcher;
};

enum inquiry_outcome {
	INQUIRY_PENDING = 0,
	INQUIRY_FOUND,
	INQUIRY_MISSING,
	INQUIRY_TRANSIENT,
};

struct inquiry {
	const struct holdings *holdings;
	struct key key;            /* its strings outlive the inquiry */
	const char *section;       /* or NULL */
	const char *text;          /* what the table of objects goes by: inquiry_text() */
	const char *forwarded_for; /* or NULL */
	unsigned int depth;        /* symsrv that it has passed */
	bool is_local;             /* ask no upstream */
	int64_t deadline_ms;
	void (*done)(struct inquiry *inquiry);
	/* result */
	enum inquiry_outcome outcome;
	struct object *object; /* a reference; the asker's from then on */
	bool was_fetched;
	/* INQUIRY_MISSING: "" when it is certain, else of whom nothing is known, see hops.h. */
	char unasked[HOPS_UNASKED_BYTES];
	/* its own */
	struct fetch_waiter waiter;
	struct job job;
	struct object *fallback; /* of this phase, for want of a better one elsewhere; or NULL */
	char *part_text;         /* of the file that a section lies in */
	unsigned int phase;
	bool was_transient;
	bool may_check;      /* it runs on one of the checkers */
	bool has_file;       /* of this phase */
	unsigned int losses; /* how often it was fetched and gone at once */
	unsigned int state;  /* of what is here and who is asked, before that was looked at */
};

#define INQUIRY_TEXT_BYTES (KEY_TEXT_BYTES + 300)

/* Returns the length. */
size_t inquiry_text(const struct key *key, const char *section, char room[INQUIRY_TEXT_BYTES]);

void inquiry_start(struct inquiry *inquiry);

/* Whether the answer is known to be "missing" already. */
bool inquiry_is_known_missing(const struct holdings *holdings, const char *text, size_t text_bytes,
			      const struct key *key, int64_t now_ms);

#endif
