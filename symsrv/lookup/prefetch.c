/* SPDX-License-Identifier: MIT */
/*
 * The end of each look-up starts the next one, on a thread of the workers. So the queue needs no
 * thread of its own.
 */
#include "symsrv/lookup/prefetch.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "symsrv/util/clock.h"

static const unsigned int most_running = 4;
static const size_t most_waiting = 20000;
static const size_t most_of_strangers = 2000;

struct prefetch_item {
	struct lookup lookup;
	struct prefetch *prefetch;
	STAILQ_ENTRY(prefetch_item) next;
	char text[]; /* of the key; its name lies in it */
};

struct prefetch {
	const struct holdings *holdings;
	int64_t longest_ms;
	pthread_mutex_t lock;
	STAILQ_HEAD(, prefetch_item) items;
	unsigned int running;
	bool is_stopping;
	struct prefetch_counts counts;
};

int prefetch_create(const struct holdings *holdings, int64_t longest_ms, struct prefetch **ret)
{
	struct prefetch *prefetch = calloc(1, sizeof(*prefetch));

	if (!prefetch)
		return -ENOMEM;
	prefetch->holdings = holdings;
	prefetch->longest_ms = longest_ms;
	STAILQ_INIT(&prefetch->items);
	pthread_mutex_init(&prefetch->lock, NULL);
	*ret = prefetch;
	return 0;
}

void prefetch_stop(struct prefetch *prefetch)
{
	struct prefetch_item *item;

	if (!prefetch)
		return;
	pthread_mutex_lock(&prefetch->lock);
	prefetch->is_stopping = true;
	while ((item = STAILQ_FIRST(&prefetch->items))) {
		STAILQ_REMOVE_HEAD(&prefetch->items, next);
		free(item);
	}
	pthread_mutex_unlock(&prefetch->lock);
}

bool prefetch_is_running(struct prefetch *prefetch)
{
	bool is_running;

	if (!prefetch)
		return false;
	pthread_mutex_lock(&prefetch->lock);
	is_running = prefetch->running > 0;
	pthread_mutex_unlock(&prefetch->lock);
	return is_running;
}

void prefetch_destroy(struct prefetch *prefetch)
{
	if (!prefetch)
		return;
	pthread_mutex_destroy(&prefetch->lock);
	free(prefetch);
}

/* Lock held. NULL: there is nothing to start now. */
static struct prefetch_item *take_item(struct prefetch *prefetch)
{
	struct prefetch_item *item = STAILQ_FIRST(&prefetch->items);

	if (!item || prefetch->running >= most_running)
		return NULL;
	STAILQ_REMOVE_HEAD(&prefetch->items, next);
	prefetch->running++;
	return item;
}

static void start_item(struct prefetch_item *item)
{
	if (!item)
		return;
	item->lookup.deadline_ms = clock_now_ms() + item->prefetch->longest_ms;
	lookup_start(&item->lookup);
}

static void on_prefetched(struct lookup *lookup)
{
	struct prefetch_item *item =
		(struct prefetch_item *)((char *)lookup - offsetof(struct prefetch_item, lookup));
	struct prefetch *prefetch = item->prefetch;
	struct prefetch_item *next;

	object_release(lookup->object);
	pthread_mutex_lock(&prefetch->lock);
	prefetch->counts.found += lookup->outcome == LOOKUP_FOUND;
	prefetch->counts.missing += lookup->outcome == LOOKUP_MISSING;
	prefetch->counts.failed += lookup->outcome == LOOKUP_TRANSIENT;
	prefetch->counts.waiting--;
	prefetch->running--;
	next = take_item(prefetch);
	pthread_mutex_unlock(&prefetch->lock);
	free(item);
	start_item(next);
}

static struct prefetch_item *make_item(struct prefetch *prefetch, const struct key *key)
{
	char text[LOOKUP_TEXT_BYTES];
	size_t length = lookup_text(key, NULL, text);
	struct prefetch_item *item = calloc(1, sizeof(*item) + length + 1);

	if (!item)
		return NULL;
	memcpy(item->text, text, length + 1);
	item->prefetch = prefetch;
	item->lookup.holdings = prefetch->holdings;
	item->lookup.text = item->text;
	item->lookup.done = on_prefetched;
	if (key_from_text(&item->lookup.key, item->text))
		return item;
	free(item);
	return NULL;
}

bool prefetch_add(struct prefetch *prefetch, const struct key *key, bool is_stranger)
{
	size_t most = is_stranger ? most_of_strangers : most_waiting;
	struct prefetch_item *item = make_item(prefetch, key), *next = NULL;
	bool is_taken;

	pthread_mutex_lock(&prefetch->lock);
	is_taken = item && !prefetch->is_stopping && prefetch->counts.waiting < most;
	if (is_taken) {
		STAILQ_INSERT_TAIL(&prefetch->items, item, next);
		prefetch->counts.waiting++;
		next = take_item(prefetch);
	} else {
		prefetch->counts.dropped++;
	}
	pthread_mutex_unlock(&prefetch->lock);
	if (!is_taken)
		free(item);
	start_item(next);
	return is_taken;
}

void prefetch_counts(struct prefetch *prefetch, struct prefetch_counts *ret)
{
	pthread_mutex_lock(&prefetch->lock);
	*ret = prefetch->counts;
	pthread_mutex_unlock(&prefetch->lock);
}
