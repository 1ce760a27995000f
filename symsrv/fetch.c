/* SPDX-License-Identifier: MIT */
#include "symsrv/fetch.h"

#include <errno.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hash.h"
#include "symsrv/clock.h"
#include "symsrv/dir_upstream.h"
#include "symsrv/log.h"
#include "symsrv/verify.h"

/* In order, the next upstream is asked when nothing has come for so long. */
static const int64_t hesitation_ms = 5000;
/* A flight goes on when its waiters have gone; so many at a time bound the memory. */
static const unsigned int most_flights = 16384;

struct fetcher {
	struct fetcher_parts parts;
	pthread_mutex_t lock; /* of everything below, and of all flights */
	struct upstream_set *set;
	struct flight *flights;
	struct lane *parked, **last_parked; /* whose files wait for room in the store */
	size_t waiter_count;
	bool is_stopping;
	unsigned long long started, joined, stored;
};

/* One upstream of a flight. */
struct lane {
	struct flight *flight;
	struct upstream *upstream;
	unsigned int variant; /* of its paths */
	struct transfer transfer;
	struct job job;
	int64_t deadline_ms; /* of a copy that waits for room; 0: it has not waited */
	struct lane *next;   /* in fetcher->parked */
};

struct flight {
	UT_hash_handle hh;
	struct fetcher *fetcher;
	struct upstream_set *set;
	struct fetch_waiter *waiters;
	char *text;
	char *place;   /* what it is found by, see place_of() */
	char *strings; /* what key.name and key.spelling point into */
	char *forwarded_for;
	unsigned int depth;
	struct key key;
	_Atomic int64_t heard_ms; /* when the last lane was started, or bytes arrived */
	unsigned int state;       /* of the waiter that it was made for */
	size_t next_lane;         /* not started yet */
	size_t running;
	bool was_transient;
	char unasked[HOPS_UNASKED_BYTES];
	bool is_settled;
	atomic_bool cancel;
	size_t lane_count;
	struct lane lanes[];
};

/* A new object stays until all who waited for it were told, and could open it. */
struct hold {
	struct fetcher *fetcher;
	struct store_arrival *arrival;
	atomic_uint users;
};

static void run_lane(struct job *job);
static void copy_lane(struct job *job);

/* ---- room ---- */

/* Lets the copy go on that has waited longest; lock held. */
static void unpark(struct fetcher *fetcher)
{
	struct lane *lane = fetcher->parked;

	if (!lane)
		return;
	fetcher->parked = lane->next;
	if (!fetcher->parked)
		fetcher->last_parked = &fetcher->parked;
	lane->next = NULL;
	workers_submit(fetcher->parts.workers, &lane->job, copy_lane);
}

/* Somebody has given room back. */
static void use_room(struct fetcher *fetcher)
{
	pthread_mutex_lock(&fetcher->lock);
	unpark(fetcher);
	pthread_mutex_unlock(&fetcher->lock);
}

/* Takes the arrival over; NULL: no memory, and it is let go. */
static struct hold *hold_create(struct fetcher *fetcher, struct store_arrival *arrival)
{
	struct hold *hold = malloc(sizeof(*hold));

	if (!hold) {
		store_abandon(arrival);
		return NULL;
	}
	*hold = (struct hold){ .fetcher = fetcher, .arrival = arrival, .users = 1 };
	return hold;
}

static void hold_release(struct hold *hold)
{
	if (!hold || atomic_fetch_sub(&hold->users, 1) != 1)
		return;
	store_abandon(hold->arrival);
	use_room(hold->fetcher);
	free(hold);
}

/* ---- making and ending flights ---- */

static void flight_destroy(struct flight *flight)
{
	if (!flight)
		return;
	upstream_set_release(flight->set);
	free(flight->text);
	free(flight->place);
	free(flight->strings);
	free(flight->forwarded_for);
	free(flight);
}

DEFINE_GUARD(flight, struct flight *, flight_destroy)

/* The key's strings belong to a request that may end before the flight. */
static bool copy_key(struct flight *flight, const struct key *key)
{
	size_t name_bytes = key->name ? strlen(key->name) + 1 : 0;
	size_t spelling_bytes = key->spelling ? strlen(key->spelling) + 1 : 0;

	flight->key = *key;
	if (!key->name)
		return true;
	flight->strings = malloc(name_bytes + spelling_bytes);
	if (!flight->strings)
		return false;
	memcpy(flight->strings, key->name, name_bytes);
	memcpy(flight->strings + name_bytes, key->spelling, spelling_bytes);
	flight->key.name = flight->strings;
	flight->key.spelling = flight->strings + name_bytes;
	return true;
}

static void add_lanes(struct flight *flight)
{
	bool only_trusted = !key_is_verifiable(flight->key.kind);
	size_t i;

	for (i = 0; i < flight->set->count; i++) {
		struct upstream *upstream = flight->set->list[i];
		struct lane *lane = &flight->lanes[flight->lane_count];

		if (only_trusted && !upstream->is_trusted)
			continue;
		lane->flight = flight;
		lane->upstream = upstream;
		flight->lane_count++;
	}
}

/*
 * What requests have in common that one flight serves: the object; the name as it
 * is spelt, because upstreams that go by names tell upper case from lower; and how
 * many symsrv they have passed. What a flight asks another symsrv for has passed
 * one more than the flight's own waiters, so that who waits for whom leads to ever
 * deeper flights, and two servers that ask each other never wait for each other.
 * On the heap, or NULL.
 */
static char *place_of(const struct fetch_waiter *waiter)
{
	char *place;

	if (asprintf(&place, "%u\n%s\n%s", waiter->depth, waiter->text,
		     waiter->key->spelling ? waiter->key->spelling : "") < 0)
		return NULL;
	return place;
}

/* Lock held. */
static struct flight *flight_create(struct fetcher *fetcher, const struct fetch_waiter *waiter,
				    const char *place)
{
	struct flight *flight GUARDED(flight) =
		calloc(1, sizeof(*flight) + fetcher->set->count * sizeof(struct lane));

	if (!flight)
		return NULL;
	flight->fetcher = fetcher;
	flight->set = upstream_set_take(fetcher->set);
	flight->state = waiter->state;
	flight->depth = waiter->depth;
	flight->text = strdup(waiter->text);
	flight->place = strdup(place);
	if (waiter->forwarded_for)
		flight->forwarded_for = strdup(waiter->forwarded_for);
	if (!flight->text || !flight->place || !copy_key(flight, waiter->key))
		return NULL;
	add_lanes(flight);
	HASH_ADD_KEYPTR(hh, fetcher->flights, flight->place, strlen(flight->place), flight);
	if (!hash_added(flight))
		return NULL;
	fetcher->started++;
	return STEAL(flight);
}

static void tell_waiter(struct job *job)
{
	struct fetch_waiter *waiter =
		(struct fetch_waiter *)((char *)job - offsetof(struct fetch_waiter, job));

	struct hold *hold = waiter->hold;

	waiter->done(waiter, waiter->outcome);
	hold_release(hold);
}

static void tell(struct fetcher *fetcher, struct fetch_waiter *waiter, enum fetch_outcome outcome,
		 struct hold *hold)
{
	waiter->outcome = outcome;
	waiter->hold = hold;
	if (hold)
		atomic_fetch_add(&hold->users, 1);
	workers_submit(fetcher->parts.tellers, &waiter->job, tell_waiter);
}

static void tell_of(const struct flight *flight, struct fetch_waiter *waiter,
		    enum fetch_outcome outcome, struct hold *hold)
{
	memcpy(waiter->unasked, flight->unasked, sizeof(waiter->unasked));
	tell(flight->fetcher, waiter, outcome, hold);
}

/* `waiter` began to look when there was something new, or may hear more than the one that the
 * flight was made for: from a symsrv that this one came from. */
static bool must_ask_again(const struct flight *flight, const struct fetch_waiter *waiter,
			   enum fetch_outcome outcome)
{
	if (outcome == FETCH_STORED)
		return false;
	return waiter->asks_again ||
	       (outcome == FETCH_UNSURE && flight->forwarded_for && waiter->forwarded_for &&
		hops_differ(flight->unasked, flight->forwarded_for, waiter->forwarded_for));
}

/* The flight is out of the table and nothing of it runs any more. */
static void land(struct flight *flight, enum fetch_outcome outcome, struct hold *hold)
{
	struct fetcher *fetcher = flight->fetcher;
	struct fetch_waiter *waiter, *next;

	if (outcome == FETCH_MISSING)
		negative_add(fetcher->parts.negative, flight->text, flight->key.spelling,
			     clock_now_ms() + flight->set->negative_ms, flight->state);
	else if (outcome == FETCH_STORED)
		negative_remove(fetcher->parts.negative, flight->text, flight->key.spelling);
	for (waiter = flight->waiters; waiter; waiter = next) {
		next = waiter->next;
		if (must_ask_again(flight, waiter, outcome))
			fetcher_join(fetcher, waiter);
		else
			tell_of(flight, waiter, outcome, hold);
	}
	flight->waiters = NULL;
}

/* Lock held. Takes the flight out of the table when its outcome is known. */
static bool take_off(struct flight *flight)
{
	struct fetcher *fetcher = flight->fetcher;
	struct fetch_waiter *waiter;

	if (!flight->hh.tbl)
		return false;
	HASH_DEL(fetcher->flights, flight);
	flight->hh.tbl = NULL;
	for (waiter = flight->waiters; waiter; waiter = waiter->next)
		fetcher->waiter_count--;
	return true;
}

/* ---- lanes ---- */

/* Lock held: starts the next lane, or all that are left. */
static void start_lanes(struct flight *flight)
{
	bool all = flight->set->ask_together;

	while (flight->next_lane < flight->lane_count && !flight->is_settled &&
	       !flight->fetcher->is_stopping) {
		struct lane *lane = &flight->lanes[flight->next_lane++];

		flight->running++;
		flight->heard_ms = clock_now_ms();
		workers_submit(flight->fetcher->parts.workers, &lane->job, run_lane);
		if (!all)
			break;
	}
}

/* What the last lane to end has to do: tell the waiters, unless that was done, and clear up. */
static void end_lane(struct lane *lane)
{
	struct flight *flight = lane->flight;
	struct fetcher *fetcher = flight->fetcher;
	bool is_over, is_told;

	pthread_mutex_lock(&fetcher->lock);
	flight->running--;
	if (!flight->running)
		start_lanes(flight);
	is_over = !flight->running;
	is_told = !is_over || !take_off(flight);
	pthread_mutex_unlock(&fetcher->lock);
	if (!is_told)
		land(flight,
		     flight->was_transient ? FETCH_TRANSIENT
		     : flight->unasked[0]  ? FETCH_UNSURE
					   : FETCH_MISSING,
		     NULL);
	if (is_over)
		flight_destroy(flight);
}

/* The first good object wins; the other lanes are called off and only have to end. `hold`: or NULL.
 */
static void settle(struct flight *flight, struct hold *hold)
{
	struct fetcher *fetcher = flight->fetcher;
	bool is_first;

	atomic_store(&flight->cancel, true);
	pthread_mutex_lock(&fetcher->lock);
	flight->is_settled = true;
	is_first = take_off(flight);
	fetcher->stored += is_first;
	pthread_mutex_unlock(&fetcher->lock);
	if (is_first)
		land(flight, FETCH_STORED, hold);
	hold_release(hold);
}

static void set_transient(struct flight *flight)
{
	pthread_mutex_lock(&flight->fetcher->lock);
	flight->was_transient = true;
	pthread_mutex_unlock(&flight->fetcher->lock);
}

/* `names` might have it, for all that is known. */
static void set_unsure(struct flight *flight, const char *names)
{
	pthread_mutex_lock(&flight->fetcher->lock);
	hops_add_unasked(flight->unasked, names, NULL);
	pthread_mutex_unlock(&flight->fetcher->lock);
}

static void name_file(struct store_record *record, const struct key *key)
{
	const char *name = key->spelling ? key->spelling : key->name;

	if (name && key->kind == KEY_SOURCE && strrchr(name, '/'))
		name = strrchr(name, '/') + 1;
	if (name)
		snprintf(record->name, sizeof(record->name), "%s", name);
}

static void give_up(struct flight *flight, int failure)
{
	log_message(LOG_LEVEL_ERROR, "store: %s: %s", flight->text, strerror(-failure));
	set_transient(flight);
}

/* True when the flight has its object. */
static bool take_in(struct lane *lane, struct store_arrival *arrival)
{
	struct flight *flight = lane->flight;
	struct upstream *upstream = lane->upstream;
	struct store_record record = { .key = flight->text };
	char reason[160];
	int failure = verify_content(store_arrival_fd(arrival), store_arrival_bytes(arrival),
				     &flight->key, &record.contents, reason, sizeof(reason));

	if (failure && failure != -EBADMSG) {
		store_abandon(arrival);
		give_up(flight, failure);
		return false;
	}
	if (failure) {
		upstream->counts.rejected++;
		log_message(LOG_LEVEL_WARNING, "upstream %s: %s: rejected: %s", upstream->name,
			    flight->text, reason);
		upstream_note_trouble(upstream, reason);
		set_unsure(flight, flight->fetcher->parts.own_name);
		store_abandon(arrival);
		return false;
	}
	upstream->counts.found++;
	upstream->counts.bytes += store_arrival_bytes(arrival);
	name_file(&record, &flight->key);
	snprintf(record.source, sizeof(record.source), "%s", upstream->name);
	failure = store_publish_held(arrival, &record);
	if (failure) {
		store_abandon(arrival);
		give_up(flight, failure);
		return false;
	}
	settle(flight, hold_create(flight->fetcher, arrival));
	return true;
}

/* Counts a try that brought nothing; true when the lane goes on with its next path. */
static bool count_failure(struct lane *lane)
{
	struct upstream_counts *counts = &lane->upstream->counts;
	struct flight *flight = lane->flight;

	switch (lane->transfer.outcome) {
	case TRANSFER_MISSING:
		counts->missing++;
		set_unsure(flight, lane->transfer.unasked);
		return true;
	case TRANSFER_REFUSED:
		counts->refused++;
		set_unsure(flight, flight->fetcher->parts.own_name);
		return true;
	case TRANSFER_TOO_LARGE:
		/* As good as a miss: to ask again may cost as many bytes again. */
		counts->rejected++;
		return false;
	case TRANSFER_DENIED:
		counts->denied++;
		set_unsure(flight, flight->fetcher->parts.own_name);
		return false;
	case TRANSFER_TRANSIENT:
		counts->transient++;
		set_transient(flight);
		return false;
	case TRANSFER_NO_ROOM:
		set_transient(flight);
		return false;
	default:
		return false;
	}
}

static void log_failure(const struct lane *lane)
{
	const struct transfer *transfer = &lane->transfer;

	if (transfer->outcome == TRANSFER_MISSING || transfer->outcome == TRANSFER_CANCELLED)
		return;
	/* That it rests was logged once and is shown. */
	if (!strncmp(transfer->error, "not asked", 9))
		return;
	if (transfer->outcome != TRANSFER_NO_ROOM)
		upstream_note_trouble(lane->upstream, transfer->error);
	if (transfer->outcome == TRANSFER_REFUSED &&
	    !upstream_refusal_is_news(lane->upstream, transfer->error, clock_now_ms()))
		return;
	log_message(LOG_LEVEL_WARNING, "upstream %s: %s: %s", lane->upstream->name,
		    lane->flight->text, transfer->error);
}

/* What is to be done after one try; true when the lane goes on with its next path. */
static bool judge(struct lane *lane)
{
	struct transfer *transfer = &lane->transfer;
	struct store_arrival *arrival = transfer->arrival;

	transfer->arrival = NULL;
	if (transfer->outcome == TRANSFER_GOT)
		return !take_in(lane, arrival);
	store_abandon(arrival);
	log_failure(lane);
	return count_failure(lane);
}

static void run_judged(struct job *job)
{
	struct lane *lane = (struct lane *)((char *)job - offsetof(struct lane, job));
	struct fetcher *fetcher = lane->flight->fetcher;
	bool goes_on;

	free(lane->transfer.path);
	lane->transfer.path = NULL;
	goes_on = judge(lane);
	use_room(fetcher);
	if (goes_on)
		run_lane(job);
	else
		end_lane(lane);
}

/* False when it has no time left for that. One that has waited before is the next again. */
static bool park(struct lane *lane)
{
	struct fetcher *fetcher = lane->flight->fetcher;
	int64_t now = clock_now_ms();
	bool is_first = !lane->deadline_ms, may;

	store_abandon(lane->transfer.arrival);
	lane->transfer.arrival = NULL;
	if (is_first)
		lane->deadline_ms = now + lane->flight->set->fetch_ms;
	pthread_mutex_lock(&fetcher->lock);
	may = now < lane->deadline_ms && !fetcher->is_stopping && !lane->flight->cancel;
	if (may && (is_first || !fetcher->parked)) {
		*fetcher->last_parked = lane;
		fetcher->last_parked = &lane->next;
	} else if (may) {
		lane->next = fetcher->parked;
		fetcher->parked = lane;
	}
	pthread_mutex_unlock(&fetcher->lock);
	return may;
}

/* Of a directory. Who waits for room has no descriptor and no thread. */
static void copy_lane(struct job *job)
{
	struct lane *lane = (struct lane *)((char *)job - offsetof(struct lane, job));
	struct transfer *transfer = &lane->transfer;

	dir_upstream_copy(transfer);
	if (transfer->outcome == TRANSFER_WAITS && park(lane))
		return;
	if (transfer->outcome == TRANSFER_WAITS)
		transfer->outcome = lane->flight->cancel ? TRANSFER_CANCELLED : TRANSFER_NO_ROOM;
	run_judged(job);
}

static void on_transfer(struct transfer *transfer)
{
	struct lane *lane = transfer->context;

	workers_submit(lane->flight->fetcher->parts.workers, &lane->job, run_judged);
}

/* Path of the next variant, on the heap; NULL when there is none. */
static char *next_path(struct lane *lane)
{
	struct buf path;
	char *text = NULL;

	buf_init(&path, 3 * KEY_TEXT_BYTES);
	if (upstream_path(lane->upstream, &lane->flight->key, lane->variant++, &path))
		text = buf_steal(&path, NULL);
	buf_deinit(&path);
	return text;
}

/* A flight may have landed between the look into the store and the start of this one. */
static bool is_stored(const struct flight *flight)
{
	struct store_record record;
	int fd;

	if (store_find(flight->fetcher->parts.store, flight->text, &fd, &record))
		return false;
	store_record_deinit(&record);
	close(fd);
	return true;
}

static void run_lane(struct job *job)
{
	struct lane *lane = (struct lane *)((char *)job - offsetof(struct lane, job));
	struct flight *flight = lane->flight;
	struct transfer *transfer = &lane->transfer;
	char *path;

	if (!lane->variant && !flight->cancel && is_stored(flight))
		settle(flight, NULL);
	path = flight->cancel ? NULL : next_path(lane);
	if (!path) {
		end_lane(lane);
		return;
	}
	*transfer = (struct transfer){
		.upstream = lane->upstream,
		.set = flight->set,
		.store = flight->fetcher->parts.store,
		.path = path,
		.forwarded_for = flight->forwarded_for,
		.depth = flight->depth,
		.accepts_msfz = flight->key.kind == KEY_MSFZ,
		.cancel = &flight->cancel,
		.heard_ms = &flight->heard_ms,
		.done = on_transfer,
		.context = lane,
	};
	lane->deadline_ms = 0;
	if (lane->upstream->kind == UPSTREAM_DIR)
		copy_lane(job);
	else
		upstream_client_start(flight->fetcher->parts.client, transfer);
}

/* ---- from outside ---- */

int fetcher_create(const struct fetcher_parts *parts, struct upstream_set *set,
		   struct fetcher **ret)
{
	struct fetcher *fetcher = calloc(1, sizeof(*fetcher));

	if (!fetcher)
		return -ENOMEM;
	*fetcher = (struct fetcher){ .parts = *parts, .set = set };
	fetcher->last_parked = &fetcher->parked;
	pthread_mutex_init(&fetcher->lock, NULL);
	*ret = fetcher;
	return 0;
}

void fetcher_destroy(struct fetcher *fetcher)
{
	if (!fetcher)
		return;
	upstream_set_release(fetcher->set);
	pthread_mutex_destroy(&fetcher->lock);
	free(fetcher);
}

void fetcher_join(struct fetcher *fetcher, struct fetch_waiter *waiter)
{
	char *place AUTO_FREE = place_of(waiter);
	struct flight *flight = NULL;
	bool is_lost = false;

	if (!place) {
		tell(fetcher, waiter, FETCH_TRANSIENT, NULL);
		return;
	}
	pthread_mutex_lock(&fetcher->lock);
	HASH_FIND_STR(fetcher->flights, place, flight);
	waiter->asks_again = flight && (int)(waiter->state - flight->state) > 0;
	if (flight) {
		fetcher->joined++;
	} else if (!fetcher->is_stopping && HASH_COUNT(fetcher->flights) < most_flights) {
		flight = flight_create(fetcher, waiter, place);
		if (flight) {
			/* Held by one more, so that it cannot end before its waiter is in it. */
			flight->running++;
			start_lanes(flight);
			flight->running--;
		}
	}
	if (flight) {
		waiter->next = flight->waiters;
		flight->waiters = waiter;
		fetcher->waiter_count++;
		is_lost = !flight->running && take_off(flight);
	}
	pthread_mutex_unlock(&fetcher->lock);
	if (!flight) {
		tell(fetcher, waiter, FETCH_TRANSIENT, NULL);
	} else if (is_lost) {
		/* There is nobody to ask. */
		land(flight, FETCH_MISSING, NULL);
		flight_destroy(flight);
	}
}

/* Lock held: moves the waiters that are out of time to `gone`. */
static void collect_expired(struct flight *flight, int64_t now_ms, bool all,
			    struct fetch_waiter **gone)
{
	struct fetch_waiter **link = &flight->waiters;

	while (*link) {
		struct fetch_waiter *waiter = *link;

		if (!all && now_ms < waiter->deadline_ms) {
			link = &waiter->next;
			continue;
		}
		*link = waiter->next;
		waiter->next = *gone;
		*gone = waiter;
		flight->fetcher->waiter_count--;
	}
}

static void tell_gone(struct fetcher *fetcher, struct fetch_waiter *gone)
{
	struct fetch_waiter *next;

	for (; gone; gone = next) {
		next = gone->next;
		tell(fetcher, gone, FETCH_TRANSIENT, NULL);
	}
}

void fetcher_tick(struct fetcher *fetcher, int64_t now_ms)
{
	struct fetch_waiter *gone = NULL;
	struct flight *flight, *next;
	struct lane *lane;

	pthread_mutex_lock(&fetcher->lock);
	/* Who waits for room does not hesitate. */
	for (lane = fetcher->parked; lane; lane = lane->next)
		lane->flight->heard_ms = now_ms;
	unpark(fetcher);
	HASH_ITER(hh, fetcher->flights, flight, next)
	{
		collect_expired(flight, now_ms, false, &gone);
		if (now_ms - flight->heard_ms >= hesitation_ms)
			start_lanes(flight);
	}
	pthread_mutex_unlock(&fetcher->lock);
	tell_gone(fetcher, gone);
}

void fetcher_stop(struct fetcher *fetcher)
{
	struct fetch_waiter *gone = NULL;
	struct flight *flight, *next;

	pthread_mutex_lock(&fetcher->lock);
	fetcher->is_stopping = true;
	HASH_ITER(hh, fetcher->flights, flight, next)
	{
		atomic_store(&flight->cancel, true);
		/* What is cut short must not look like a miss. */
		flight->was_transient = true;
		collect_expired(flight, 0, true, &gone);
	}
	while (fetcher->parked)
		unpark(fetcher);
	pthread_mutex_unlock(&fetcher->lock);
	tell_gone(fetcher, gone);
}

struct upstream_set *fetcher_upstreams(struct fetcher *fetcher)
{
	struct upstream_set *set;

	pthread_mutex_lock(&fetcher->lock);
	set = upstream_set_take(fetcher->set);
	pthread_mutex_unlock(&fetcher->lock);
	return set;
}

void fetcher_set_upstreams(struct fetcher *fetcher, struct upstream_set *set)
{
	struct upstream_set *old;

	pthread_mutex_lock(&fetcher->lock);
	old = fetcher->set;
	fetcher->set = set;
	pthread_mutex_unlock(&fetcher->lock);
	upstream_set_release(old);
}

void fetcher_counts(struct fetcher *fetcher, struct fetch_counts *ret)
{
	pthread_mutex_lock(&fetcher->lock);
	*ret = (struct fetch_counts){ .flights = HASH_COUNT(fetcher->flights),
				      .waiters = fetcher->waiter_count,
				      .started = fetcher->started,
				      .joined = fetcher->joined,
				      .stored = fetcher->stored };
	pthread_mutex_unlock(&fetcher->lock);
}
