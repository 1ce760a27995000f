/* SPDX-License-Identifier: MIT */
/*
 * One fetch for all clients that want an object.
 *
 *   fetcher_join()   finds the flight for the object, or creates it, and adds a waiter
 *   run_lane()       a lane asks one upstream, path by path, over HTTP or from a directory
 *   lane_judge()     lane_result.c: verifies what arrived and publishes it, or lets the lane go on
 *   end_lane()       the last lane calls the waiters and removes the flight from the table
 *
 * With --ask order the lanes start one after the other, and the next one also starts when nothing
 * has come for a while (fetcher_tick()). With --ask together all start at once; the first good
 * object wins.
 */
#include "symsrv/upstream/single_flight.h"

#include <errno.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "symsrv/upstream/dir_upstream.h"
#include "symsrv/upstream/fleet.h"
#include "symsrv/upstream/lane_result.h"
#include "symsrv/util/clock.h"

/* With --ask order, the next upstream is asked when nothing has come for this time. */
static const int64_t hesitation_ms = 5000;
/* A tier is near, or of no use; a peer waits for upstreams itself. */
static const int64_t tier_hesitation_ms = 1000;
static const int64_t peer_hesitation_ms = 20000;
/* A flight continues when its waiters have gone; this limit bounds the memory. */
static const unsigned int most_flights = 16384;

/* Keeps a new object until all waiters were called and could open it. */
struct hold {
	struct fetcher *fetcher;
	struct store_incoming *incoming;
	atomic_uint users;
};

static void run_lane(struct job *job);
static void copy_lane(struct job *job);

/* ---- room ---- */

/* Resumes the copy that has waited longest; lock held. */
static void lane_resume(struct fetcher *fetcher)
{
	struct lane *lane = STAILQ_FIRST(&fetcher->suspended);

	if (!lane)
		return;
	STAILQ_REMOVE_HEAD(&fetcher->suspended, next);
	workers_submit(fetcher->parts.workers, &lane->job, copy_lane);
}

/* An arrival has given room back. */
static void use_room(struct fetcher *fetcher)
{
	pthread_mutex_lock(&fetcher->lock);
	lane_resume(fetcher);
	pthread_mutex_unlock(&fetcher->lock);
}

/* Adopts the arrival; NULL: out of memory, and the arrival is abandoned. */
static struct hold *hold_create(struct fetcher *fetcher, struct store_incoming *incoming)
{
	struct hold *hold = malloc(sizeof(*hold));

	if (!hold) {
		store_abandon(incoming);
		return NULL;
	}
	*hold = (struct hold){ .fetcher = fetcher, .incoming = incoming, .users = 1 };
	return hold;
}

static void hold_release(struct hold *hold)
{
	if (!hold || atomic_fetch_sub(&hold->users, 1) != 1)
		return;
	store_abandon(hold->incoming);
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
	free(flight->name);
	free(flight->spelling);
	free(flight->forwarded_for);
	free(flight);
}

DEFINE_GUARD(flight, struct flight *, flight_destroy)

/* The strings of the key belong to a request that may end before the flight. */
static bool copy_key(struct flight *flight, const struct key *key)
{
	flight->key = *key;
	if (!key->name)
		return true;
	flight->key.name = flight->name = strdup(key->name);
	flight->key.spelling = flight->spelling = strdup(key->spelling);
	return flight->name && flight->spelling;
}

static void add_lane(struct flight *flight, struct upstream *upstream)
{
	struct lane *lane = &flight->lanes[flight->lane_count++];

	lane->flight = flight;
	lane->upstream = upstream;
}

/* The tier first, then the peers that come before this server, then the upstreams. */
static void add_lanes(struct flight *flight, bool asks_peers)
{
	const struct upstream_set *set = flight->set;
	bool only_trusted = !key_is_verifiable(flight->key.kind);
	struct upstream *peer;
	size_t i;

	if (set->tier && upstream_has_kind(set->tier, flight->key.kind))
		add_lane(flight, set->tier);
	for (i = 0; asks_peers && (peer = fleet_owner(set, &flight->key, i)); i++)
		add_lane(flight, peer);
	for (i = 0; i < set->count; i++) {
		struct upstream *upstream = set->list[i];

		if (upstream->kind <= UPSTREAM_DIR && (!only_trusted || upstream->is_trusted) &&
		    upstream_has_kind(upstream, flight->key.kind))
			add_lane(flight, upstream);
	}
}

/*
 * The part of a request that decides which flight serves it: the object; the name as the client
 * wrote it, because some upstreams compare names exactly; and the number of symsrv it has passed.
 * When a flight asks another symsrv, that request has passed one more than the flight's waiters. So
 * waiting always leads to a deeper flight, and two servers that ask each other never wait for each
 * other. A flight that asks peers is another one than the flight that their requests join: that one
 * waits for no peer. Heap, or NULL.
 */
static char *place_of(const struct fetch_waiter *waiter, bool asks_peers)
{
	char *place;

	if (asprintf(&place, "%u%s\n%s\n%s", waiter->depth, asks_peers ? "p" : "", waiter->text,
		     waiter->key->spelling ? waiter->key->spelling : "") < 0)
		return NULL;
	return place;
}

/* The caller holds the lock. */
static struct flight *flight_create(struct fetcher *fetcher, const struct fetch_waiter *waiter,
				    const char *place, bool asks_peers)
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
	add_lanes(flight, asks_peers);
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

static void flight_call_waiter(struct fetcher *fetcher, struct fetch_waiter *waiter,
			       enum fetch_outcome outcome, struct hold *hold)
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
	memcpy(waiter->unqueried, flight->unqueried, sizeof(waiter->unqueried));
	flight_call_waiter(flight->fetcher, waiter, outcome, hold);
}

/* `waiter` began to look when there was something new; or its chain lacks a symsrv that the chain
 * of the flight has, so that it may get a better answer. */
static bool must_ask_again(const struct flight *flight, const struct fetch_waiter *waiter,
			   enum fetch_outcome outcome)
{
	if (outcome == FETCH_STORED)
		return false;
	return waiter->asks_again ||
	       (outcome == FETCH_UNSURE && flight->forwarded_for && waiter->forwarded_for &&
		proxy_loop_differ(flight->unqueried, flight->forwarded_for, waiter->forwarded_for));
}

/* The flight is out of the table, and none of its lanes runs. */
static void finish_flight(struct flight *flight, enum fetch_outcome outcome, struct hold *hold)
{
	struct fetcher *fetcher = flight->fetcher;
	struct fetch_waiter *waiter, *next;

	if (outcome == FETCH_MISSING)
		negative_cache_add(fetcher->parts.negative, flight->text, flight->key.spelling,
				   clock_now_ms() + flight->set->negative_cache_ms, flight->state);
	else if (outcome == FETCH_STORED)
		negative_cache_remove(fetcher->parts.negative, flight->text, flight->key.spelling);
	for (waiter = flight->waiters; waiter; waiter = next) {
		next = waiter->next;
		if (must_ask_again(flight, waiter, outcome))
			fetcher_join(fetcher, waiter);
		else
			tell_of(flight, waiter, outcome, hold);
	}
	flight->waiters = NULL;
}

/* Lock held. Removes the flight from the table when its outcome is known. */
static bool start_flight(struct flight *flight)
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

/* Starts the next lane, or all that are left; the tier and the peers are asked one after the other.
 * The caller holds the lock. */
static void start_lanes(struct flight *flight)
{
	bool all = flight->set->ask_together;

	while (flight->next_lane < flight->lane_count && !flight->is_settled &&
	       !flight->fetcher->is_stopping) {
		struct lane *lane = &flight->lanes[flight->next_lane++];

		flight->running++;
		flight->own_running += upstream_is_optional(lane->upstream);
		flight->heard_ms = clock_now_ms();
		workers_submit(flight->fetcher->parts.workers, &lane->job, run_lane);
		if (!all || upstream_is_optional(lane->upstream))
			break;
	}
}

/* How long the flight waits for its last lane before it starts the next one too. */
static int64_t hesitation_of(const struct flight *flight)
{
	const struct lane *last = flight->next_lane ? &flight->lanes[flight->next_lane - 1] : NULL;

	if (!last || !upstream_is_optional(last->upstream))
		return hesitation_ms;
	return last->upstream->kind == UPSTREAM_S3 ? tier_hesitation_ms : peer_hesitation_ms;
}

/* Called when the last lane has ended: calls the waiters, unless that was done, and frees the
 * flight. */
static void end_lane(struct lane *lane)
{
	struct flight *flight = lane->flight;
	struct fetcher *fetcher = flight->fetcher;
	bool is_over, is_told, is_decided;

	pthread_mutex_lock(&fetcher->lock);
	flight->running--;
	flight->own_running -= upstream_is_optional(lane->upstream);
	if (lane->is_decisive)
		flight->next_lane = flight->lane_count;
	if (!flight->running)
		start_lanes(flight);
	is_over = !flight->running;
	/* All upstreams have answered: a tier or a peer that hangs is not waited for. */
	is_decided = is_over || (!upstream_is_optional(lane->upstream) &&
				 flight->running == flight->own_running &&
				 flight->next_lane == flight->lane_count);
	if (is_decided && !is_over) {
		atomic_store(&flight->cancel, true);
		flight->running++; /* until the waiters were called */
	}
	is_told = !is_decided || !start_flight(flight);
	pthread_mutex_unlock(&fetcher->lock);
	if (!is_told)
		finish_flight(flight,
			      flight->was_transient  ? FETCH_TRANSIENT
			      : flight->unqueried[0] ? FETCH_UNSURE
						     : FETCH_MISSING,
			      NULL);
	if (is_decided && !is_over) {
		pthread_mutex_lock(&fetcher->lock);
		is_over = !--flight->running;
		pthread_mutex_unlock(&fetcher->lock);
	}
	if (is_over)
		flight_destroy(flight);
}

/* The first good object wins; the other lanes are cancelled and only have to end. `hold`: or NULL.
 */
static void flight_settle(struct flight *flight, struct hold *hold)
{
	struct fetcher *fetcher = flight->fetcher;
	bool is_first;

	atomic_store(&flight->cancel, true);
	pthread_mutex_lock(&fetcher->lock);
	flight->is_settled = true;
	is_first = start_flight(flight);
	fetcher->stored += is_first;
	pthread_mutex_unlock(&fetcher->lock);
	if (is_first)
		finish_flight(flight, FETCH_STORED, hold);
	hold_release(hold);
}

static void run_judged(struct job *job)
{
	struct lane *lane = (struct lane *)((char *)job - offsetof(struct lane, job));
	struct fetcher *fetcher = lane->flight->fetcher;
	struct store_incoming *stored = NULL;
	enum lane_result result;

	free(lane->transfer.path);
	lane->transfer.path = NULL;
	result = lane_judge(lane, &stored);
	if (result == LANE_GOT && !upstream_is_optional(lane->upstream))
		tier_uploads_add(fetcher->parts.uploads, lane->flight->set, lane->flight->text);
	if (result == LANE_GOT)
		flight_settle(lane->flight, hold_create(fetcher, stored));
	use_room(fetcher);
	if (result == LANE_GOES_ON)
		run_lane(job);
	else
		end_lane(lane);
}

/* False when there is no time left for that. A copy that has waited before is resumed first. */
static bool lane_suspend(struct lane *lane)
{
	struct fetcher *fetcher = lane->flight->fetcher;
	int64_t now = clock_now_ms();
	bool is_first = !lane->deadline_ms, may;

	store_abandon(lane->transfer.incoming);
	lane->transfer.incoming = NULL;
	if (is_first)
		lane->deadline_ms = now + lane->flight->set->fetch_ms;
	pthread_mutex_lock(&fetcher->lock);
	may = now < lane->deadline_ms && !fetcher->is_stopping && !lane->flight->cancel;
	if (may && is_first)
		STAILQ_INSERT_TAIL(&fetcher->suspended, lane, next);
	else if (may)
		STAILQ_INSERT_HEAD(&fetcher->suspended, lane, next);
	pthread_mutex_unlock(&fetcher->lock);
	return may;
}

/* Copies from a directory. A copy that waits for room holds no descriptor and no thread. */
static void copy_lane(struct job *job)
{
	struct lane *lane = (struct lane *)((char *)job - offsetof(struct lane, job));
	struct transfer *transfer = &lane->transfer;

	dir_upstream_copy(transfer);
	if (transfer->outcome == TRANSFER_WAITS && lane_suspend(lane))
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

/* The path of the next variant, heap; NULL when there is none. */
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

/* A flight may have ended between the look into the store and the start of this one. */
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
		flight_settle(flight, NULL);
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

/* ---- public functions --------------------------------------------------------- */

int fetcher_create(const struct fetcher_parts *parts, struct upstream_set *set,
		   struct fetcher **ret)
{
	struct fetcher *fetcher = calloc(1, sizeof(*fetcher));

	if (!fetcher)
		return -ENOMEM;
	*fetcher = (struct fetcher){ .parts = *parts, .set = set };
	STAILQ_INIT(&fetcher->suspended);
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
	char *place AUTO_FREE = NULL;
	struct flight *flight = NULL;
	bool is_lost = false, asks_peers;

	pthread_mutex_lock(&fetcher->lock);
	asks_peers = !waiter->from_peer && fleet_owner(fetcher->set, waiter->key, 0);
	place = place_of(waiter, asks_peers);
	if (!place) {
		pthread_mutex_unlock(&fetcher->lock);
		flight_call_waiter(fetcher, waiter, FETCH_TRANSIENT, NULL);
		return;
	}
	HASH_FIND_STR(fetcher->flights, place, flight);
	waiter->asks_again = flight && (int)(waiter->state - flight->state) > 0;
	if (flight) {
		fetcher->joined++;
	} else if (!fetcher->is_stopping && HASH_COUNT(fetcher->flights) < most_flights) {
		flight = flight_create(fetcher, waiter, place, asks_peers);
		if (flight) {
			/* Has one extra reference, so that it cannot end before its waiter has
			 * joined. */
			flight->running++;
			start_lanes(flight);
			flight->running--;
		}
	}
	if (flight) {
		waiter->next = flight->waiters;
		flight->waiters = waiter;
		fetcher->waiter_count++;
		is_lost = !flight->running && start_flight(flight);
	}
	pthread_mutex_unlock(&fetcher->lock);
	if (!flight) {
		flight_call_waiter(fetcher, waiter, FETCH_TRANSIENT, NULL);
	} else if (is_lost) {
		/* There is no upstream to ask. */
		finish_flight(flight, FETCH_MISSING, NULL);
		flight_destroy(flight);
	}
}

/* Lock held: tells the waiters whose time is over. */
static void tell_expired(struct flight *flight, int64_t now_ms)
{
	struct fetch_waiter **link = &flight->waiters;

	while (*link) {
		struct fetch_waiter *waiter = *link;

		if (now_ms < waiter->deadline_ms) {
			link = &waiter->next;
			continue;
		}
		*link = waiter->next;
		flight->fetcher->waiter_count--;
		flight_call_waiter(flight->fetcher, waiter, FETCH_TRANSIENT, NULL);
	}
}

void fetcher_tick(struct fetcher *fetcher, int64_t now_ms)
{
	struct flight *flight, *next;
	struct lane *lane;

	pthread_mutex_lock(&fetcher->lock);
	/* An upstream is not slow when its copy waits for room. */
	for (lane = STAILQ_FIRST(&fetcher->suspended); lane; lane = STAILQ_NEXT(lane, next))
		lane->flight->heard_ms = now_ms;
	lane_resume(fetcher);
	HASH_ITER(hh, fetcher->flights, flight, next)
	{
		tell_expired(flight, now_ms);
		if (now_ms - flight->heard_ms >= hesitation_of(flight))
			start_lanes(flight);
	}
	pthread_mutex_unlock(&fetcher->lock);
}

void fetcher_stop(struct fetcher *fetcher)
{
	struct flight *flight, *next;

	pthread_mutex_lock(&fetcher->lock);
	fetcher->is_stopping = true;
	HASH_ITER(hh, fetcher->flights, flight, next)
	{
		atomic_store(&flight->cancel, true);
		/* A lane that was cut short must not look like a miss. */
		flight->was_transient = true;
		tell_expired(flight, INT64_MAX);
	}
	while (!STAILQ_EMPTY(&fetcher->suspended))
		lane_resume(fetcher);
	pthread_mutex_unlock(&fetcher->lock);
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
