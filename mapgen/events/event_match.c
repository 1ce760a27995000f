/* SPDX-License-Identifier: MIT */
#include "mapgen/events/event_match.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/base/hash.h"

enum {
	MOST_NAME = 64,
	MOST_PROBES = 256,
};

/* A hit, or an event: it has the stack of its hit, or EVENT_MATCH_NONE. */
struct noted {
	uint64_t time_ns;
	uint32_t stack;
};

struct key {
	int32_t tid;
	char tracepoint[MOST_NAME];
};

/* One thread and name. */
struct pair {
	UT_hash_handle hh;
	struct key key;
	struct noted *hits;
	size_t hit_count, hit_capacity;
	struct noted *events;
	size_t event_count, event_capacity, next;
	bool is_resolved;
	size_t matched;
};

struct event_match {
	struct pair *pairs;
	struct event_match_counts counts;
	uint64_t end_ns; /* of all streams */
	/* Names with a hit. An event whose name has none has no probe, and misses no sample. */
	char probes[MOST_PROBES][MOST_NAME];
	size_t probe_count;
};

struct sym_error *event_match_create(struct event_match **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : &sym_error_no_memory;
}

void event_match_destroy(struct event_match *match)
{
	struct pair *pair, *next;

	if (!match)
		return;
	HASH_ITER(hh, match->pairs, pair, next)
	{
		HASH_DEL(match->pairs, pair);
		free(pair->hits);
		free(pair->events);
		free(pair);
	}
	free(match);
}

static struct key make_key(int32_t tid, const char *tracepoint)
{
	struct key key;

	memset(&key, 0, sizeof(key)); /* padding is compared too */
	key.tid = tid;
	memcpy(key.tracepoint, tracepoint, strnlen(tracepoint, MOST_NAME - 1));
	return key;
}

static struct pair *find(const struct event_match *match, int32_t tid, const char *tracepoint)
{
	struct key key = make_key(tid, tracepoint);
	struct pair *pair;

	HASH_FIND(hh, match->pairs, &key, sizeof(key), pair);
	return pair;
}

static struct pair *find_or_add(struct event_match *match, int32_t tid, const char *tracepoint)
{
	struct key key = make_key(tid, tracepoint);

	return hash_find_or_add(&match->pairs, &key, sizeof(key), offsetof(struct pair, key),
				sizeof(struct pair), NULL);
}

static bool has_probe(const struct event_match *match, const char *tracepoint)
{
	for (size_t i = 0; i < match->probe_count; i++)
		if (!strcmp(match->probes[i], tracepoint))
			return true;
	return false;
}

static void note_probe(struct event_match *match, const char *tracepoint)
{
	if (match->probe_count < MOST_PROBES && !has_probe(match, tracepoint))
		memcpy(match->probes[match->probe_count++], tracepoint, MOST_NAME);
}

struct sym_error *event_match_note_hit(struct event_match *match, int32_t tid,
				       const char *tracepoint, uint64_t time_ns, uint32_t stack)
{
	struct pair *pair = find_or_add(match, tid, tracepoint);

	if (!pair || !grow_items((void **)&pair->hits, &pair->hit_capacity, pair->hit_count,
				 sizeof(*pair->hits)))
		return &sym_error_no_memory;
	if (!pair->hit_count)
		note_probe(match, pair->key.tracepoint);
	pair->hits[pair->hit_count++] = (struct noted){ time_ns, stack };
	return NULL;
}

struct sym_error *event_match_note_event(struct event_match *match, int32_t tid,
					 const char *tracepoint, uint64_t time_ns)
{
	struct pair *pair = find_or_add(match, tid, tracepoint);

	if (!pair || !grow_items((void **)&pair->events, &pair->event_capacity, pair->event_count,
				 sizeof(*pair->events)))
		return &sym_error_no_memory;
	pair->events[pair->event_count++] = (struct noted){ time_ns, EVENT_MATCH_NONE };
	return NULL;
}

static int compare(const void *left, const void *right)
{
	const struct noted *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static void resolve(struct event_match *match, struct pair *pair, uint64_t end_ns)
{
	size_t matched = 0;

	/* Hits whose events have not come may be of a process that follows. */
	if (pair->is_resolved || !pair->event_count)
		return;
	pair->is_resolved = true;

	if (pair->hit_count)
		qsort(pair->hits, pair->hit_count, sizeof(*pair->hits), compare);
	for (size_t i = 0; i < pair->hit_count; i++) {
		const struct noted *hit = &pair->hits[i];
		size_t before = ASCENDING_COUNT(pair->event_count, j,
						pair->events[j].time_ns <= hit->time_ns);

		if (!before || pair->events[before - 1].stack != EVENT_MATCH_NONE) {
			match->counts.hits_alone += hit->time_ns <= end_ns;
			continue;
		}
		pair->events[before - 1].stack = hit->stack;
		matched++;
	}
	match->counts.matched += matched;
	pair->matched = matched;
}

void event_match_resolve(struct event_match *match, uint64_t end_ns)
{
	struct pair *pair, *next;

	HASH_ITER(hh, match->pairs, pair, next)
	resolve(match, pair, end_ns);
	if (end_ns > match->end_ns)
		match->end_ns = end_ns;
}

uint32_t event_match_next(struct event_match *match, int32_t tid, const char *tracepoint)
{
	struct pair *pair = find(match, tid, tracepoint);

	return pair && pair->next < pair->event_count ? pair->events[pair->next++].stack
						      : EVENT_MATCH_NONE;
}

struct event_match_counts event_match_counts(const struct event_match *match)
{
	struct event_match_counts counts = match->counts;

	for (const struct pair *pair = match->pairs; pair; pair = pair->hh.next) {
		for (size_t i = 0; !pair->is_resolved && i < pair->hit_count; i++)
			counts.hits_alone += pair->hits[i].time_ns <= match->end_ns;
		if (has_probe(match, pair->key.tracepoint))
			counts.events_alone += pair->event_count - pair->matched;
	}
	return counts;
}
