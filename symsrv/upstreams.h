/* SPDX-License-Identifier: MIT */
/*
 * The servers that may be asked, as the operator named them, and how they have
 * behaved. A set is immutable and counted, so that a reload swaps it while
 * fetches of the old one go on; an upstream that stays the same keeps its
 * breaker and its counts. Knows which paths a kind of upstream is asked for,
 * refuses to know how.
 */
#ifndef SYMSRV_UPSTREAMS_H
#define SYMSRV_UPSTREAMS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "libsym/base/buf.h"
#include "symsrv/breaker.h"
#include "symsrv/key.h"
#include "symsrv/net_rules.h"
#include "symsrv/settings.h"

enum upstream_kind {
	UPSTREAM_SSQP,
	UPSTREAM_DEBUGINFOD,
	UPSTREAM_SYMSRV,
	UPSTREAM_DIR,
};

struct upstream_counts {
	atomic_ullong asked;
	atomic_ullong found;
	atomic_ullong missing;
	atomic_ullong refused;   /* statuses that do not say whether there is one */
	atomic_ullong transient; /* failures that may pass */
	atomic_ullong rejected;  /* arrived, and was not what was asked for */
	atomic_ullong denied;    /* would have led to an address that must not be reached */
	atomic_ullong bytes;
};

struct transfer;

/* The transfer thread's own. */
struct upstream_queue {
	struct transfer *waiting, **last_waiting;
	unsigned int active;
};

/*
 * One for requests of each number of symsrv passed: were all turns of two servers
 * that ask each other taken by their own clients' requests, those that these wait
 * for would never have theirs. Beyond the default of --forwarded-limit the last one
 * serves all.
 */
#define UPSTREAM_QUEUES 9

struct upstream {
	atomic_uint references;
	enum upstream_kind kind;
	char *name;
	char *url;             /* without user and password; of a directory: its path */
	char *user, *password; /* from the URL, decoded; or NULL */
	char *authorization;   /* value of the header, or NULL */
	bool is_trusted;
	struct upstream_counts counts;
	pthread_mutex_t lock; /* of the breaker and of the last trouble */
	struct breaker breaker;
	char trouble[160]; /* "": none yet */
	char told[32];     /* refusal that was logged last */
	int64_t told_ms;
	int64_t trouble_s; /* since 1970 */
	struct upstream_queue queues[UPSTREAM_QUEUES];
};

struct upstream_set {
	atomic_uint references;
	struct upstream **list;
	size_t count;
	struct net_rules deny, allow;
	bool ask_together;
	uint64_t max_object_bytes;
	int64_t connect_ms, stall_ms, fetch_ms, negative_ms;
	unsigned int retries, max_fetches;
	uint64_t forwarded_limit;
};

/* `previous` may be NULL. False after writing one line to `message`. */
bool upstream_set_create(const struct options *options, struct upstream_set *previous,
			 char *message, size_t message_bytes, struct upstream_set **ret);
struct upstream_set *upstream_set_take(struct upstream_set *set);
void upstream_set_release(struct upstream_set *set);

/*
 * The path to ask for at try number `variant` (0, 1, ...), appended to `path`
 * without a leading slash; false when there is no further one.
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
/* It said that it is not to be asked for so long: nobody does, for five minutes at most. */
void upstream_rests(struct upstream *upstream, int64_t now_ms, int64_t rest_ms);
enum breaker_state upstream_state(struct upstream *upstream);

/* Notes what went wrong last, for people to read; and reads it ("": nothing yet). */
void upstream_note_trouble(struct upstream *upstream, const char *text);
/* Whether a refusal is to be logged: another than the last one, or that was an hour ago. */
bool upstream_refusal_is_news(struct upstream *upstream, const char *text, int64_t now_ms);
int64_t upstream_last_trouble(struct upstream *upstream, char room[160]);

/* "ssqp", ...: static. */
const char *upstream_kind_text(enum upstream_kind kind);

#endif
