/* SPDX-License-Identifier: MIT */
/*
 * The configured upstreams, and their state. A set is immutable and reference counted, so a reload
 * can replace it while fetches of the old set go on; an upstream that stays the same keeps its
 * breaker and its counts. Knows which paths each kind of upstream has, not how they are fetched.
 */
#ifndef SYMSRV_UPSTREAM_UPSTREAM_SET_H
#define SYMSRV_UPSTREAM_UPSTREAM_SET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "libsym/base/buf.h"
#include "symsrv/key/key.h"
#include "symsrv/upstream/cidr_rules.h"
#include "symsrv/upstream/circuit_breaker.h"
#include "symsrv/upstream/s3_credentials.h"
#include "symsrv/util/log.h"
#include "symsrv/util/settings.h"

enum upstream_kind {
	UPSTREAM_SSQP,
	UPSTREAM_DEBUGINFOD,
	UPSTREAM_SYMSRV,
	UPSTREAM_DIR,
	UPSTREAM_S3,   /* the second tier of the store */
	UPSTREAM_PEER, /* another server of the fleet */
};

struct upstream_counts {
	atomic_ullong asked;
	atomic_ullong found;
	atomic_ullong missing;
	atomic_ullong refused;   /* statuses that do not say whether the object exists */
	atomic_ullong transient; /* failures that may pass */
	atomic_ullong rejected;  /* arrived, and was the wrong file */
	atomic_ullong denied;    /* led to a forbidden address */
	atomic_ullong bytes;
};

STAILQ_HEAD(transfers, transfer);

/* For the transfer thread. */
struct upstream_queue {
	struct transfers waiting;
	unsigned int active;
};

/*
 * One queue for each number of symsrv that a request has passed. When two servers ask each other,
 * requests of their own clients could otherwise take all places, and the requests that these wait
 * for would never get one. Beyond the default of --forwarded-limit the last queue serves all.
 */
#define UPSTREAM_QUEUES 9

struct upstream {
	atomic_uint references;
	enum upstream_kind kind;
	char *name;
	char *url;             /* without user and password; for a directory: its path */
	char *user, *password; /* from the URL, decoded; or NULL */
	char *authorization;   /* value of the header, or NULL */
	struct s3_credentials s3;
	bool is_trusted;
	struct upstream_counts counts;
	struct log_limit rejected_lines;
	pthread_mutex_t lock; /* protects the breaker and the last problem */
	struct circuit_breaker breaker;
	char trouble[160]; /* "": none so far */
	char told[96];     /* the failure that was logged last; "": none since it answered */
	int64_t told_ms;
	int64_t trouble_s; /* since 1970 */
	struct upstream_queue queues[UPSTREAM_QUEUES];
};

struct upstream_set {
	atomic_uint references;
	struct upstream **list; /* the tier, the peers, then the upstreams */
	size_t count;
	struct upstream *tier; /* in `list`, or NULL */
	size_t peer_count;
	char *self;                   /* URL of this server among its peers, or NULL */
	struct text_list deny, allow; /* networks */
	bool ask_together;
	uint64_t max_object_bytes;
	int64_t connect_ms, stall_ms, fetch_ms, negative_cache_ms;
	unsigned int retries, max_fetches;
	uint64_t forwarded_limit;
};

/* `previous` may be NULL. False after one line was written to `message`. */
bool upstream_set_create(const struct options *options, struct upstream_set *previous,
			 char *message, size_t message_bytes, struct upstream_set **ret);
struct upstream_set *upstream_set_take(struct upstream_set *set);
void upstream_set_release(struct upstream_set *set);

/* Whether it can have objects of this kind. */
bool upstream_has_kind(const struct upstream *upstream, enum key_kind kind);

/*
 * The path of try number `variant` (0, 1, ...), appended to `path` without a leading slash; false
 * when there is no further one.
 */
bool upstream_path(const struct upstream *upstream, const struct key *key, unsigned int variant,
		   struct buf *path);

bool upstream_may_ask(struct upstream *upstream, int64_t now_ms);
enum upstream_report {
	UPSTREAM_ANSWERED,
	UPSTREAM_FAILED,
	UPSTREAM_NOT_ASKED
};
void upstream_report(struct upstream *upstream, enum upstream_report report, int64_t now_ms);
/* Others have answered while it was slow: `how`. A failure of a tier; a peer waits for upstreams.
 */
void upstream_report_slowness(struct upstream *upstream, const char *how, int64_t now_ms);
/* It asked for a pause of this length: no requests, for five minutes at most. */
void upstream_rests(struct upstream *upstream, int64_t now_ms, int64_t rest_ms);
enum circuit_breaker_state upstream_state(struct upstream *upstream);

/* Whether others answer when it fails: a tier or a peer. */
static inline bool upstream_is_optional(const struct upstream *upstream)
{
	return upstream->kind == UPSTREAM_S3 || upstream->kind == UPSTREAM_PEER;
}

/* Records the last problem, for people; and reads it ("": none yet). */
void upstream_note_trouble(struct upstream *upstream, const char *text);
/* Whether a failure is to be logged: it differs from the last one, or that was an hour ago. */
bool upstream_refusal_is_news(struct upstream *upstream, const char *text, int64_t now_ms);
int64_t upstream_last_trouble(struct upstream *upstream, char room[160]);

/* Returns "ssqp", ...; static. */
const char *upstream_kind_text(enum upstream_kind kind);

#endif
