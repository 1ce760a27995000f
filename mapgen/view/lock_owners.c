/* SPDX-License-Identifier: MIT */
#include "mapgen/view/lock_owners.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/error.h"
#include "mapgen/view/event_origins.h"
#include "mapgen/view/frame_groups.h"

enum {
	MOST_SPANS_OF_AN_OWNER = 1 << 10,
};

struct thread_span {
	uint64_t tid;
	const struct profile_span *span;
};

struct searching {
	const struct profile *profile;
	const uint32_t *groups;
	struct thread_span *spans; /* by thread id, then end */
	struct lock_owners owners;
};

static int compare_spans(const void *left, const void *right)
{
	const struct thread_span *a = left, *b = right;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return (a->span->end_ns > b->span->end_ns) - (a->span->end_ns < b->span->end_ns);
}

/* The first span of the thread that ends after this time. */
static size_t find_first(const struct searching *searching, uint64_t tid, uint64_t time_ns)
{
	const struct thread_span *spans = searching->spans;

	return ASCENDING_COUNT(searching->profile->span_count, i,
			       spans[i].tid < tid ||
				       (spans[i].tid == tid && spans[i].span->end_ns <= time_ns));
}

static uint32_t find_innermost(const struct searching *searching, const uint32_t *frames,
			       size_t count)
{
	for (size_t i = count; i > 0; i--)
		if (frame_kind_is_managed(
			    frame_table_at(searching->profile->frames, frames[i - 1])->kind))
			return searching->groups[frames[i - 1]];
	return FRAME_NONE;
}

/* A thread held a lock, and others waited for it. */
struct held {
	const struct event_row *lock;
	uint64_t tid, begin_ns, end_ns;
	uint64_t waiters;
};

static struct sym_error *add_place(struct searching *searching, const struct held *held,
				   const struct profile_span *span)
{
	const struct frame_table *table = searching->profile->frames;
	struct lock_owners *owners = &searching->owners;
	size_t count;
	const uint32_t *frames = frame_table_stack(table, span->stack, &count);
	uint32_t where = event_origins_where(table, frames, count);
	uint32_t innermost = find_innermost(searching, frames, count);
	uint64_t begin = span->begin_ns > held->begin_ns ? span->begin_ns : held->begin_ns;
	uint64_t end = span->end_ns < held->end_ns ? span->end_ns : held->end_ns;

	if (where == FRAME_NONE || begin >= end)
		return NULL;
	where = searching->groups[where];
	if (!grow_items((void **)&owners->places, &owners->capacity, owners->count,
			sizeof(*owners->places)))
		return &sym_error_no_memory;
	owners->places[owners->count++] =
		(struct owner_place){ .lock = held->lock,
				      .where = where,
				      .innermost = innermost == where ? FRAME_NONE : innermost,
				      .time_ns = (end - begin) * held->waiters };
	return NULL;
}

static struct sym_error *add_held(struct searching *searching, const struct held *held)
{
	size_t first = find_first(searching, held->tid, held->begin_ns);
	struct sym_error *error = NULL;

	for (size_t i = first;
	     !error && i < searching->profile->span_count && i - first < MOST_SPANS_OF_AN_OWNER;
	     i++) {
		const struct thread_span *at = &searching->spans[i];

		if (at->tid != held->tid || at->span->begin_ns >= held->end_ns)
			break;
		error = add_place(searching, held, at->span);
	}
	return error;
}

/* ---- who holds a lock ------------------------------------------------------------------------
 */

/* A wait begins, and its event says who holds the lock, or it ends, and the waiter holds it. */
struct turn {
	const struct event_row *lock;
	uint64_t time_ns, owner_tid;
	bool is_end;
};

static int compare_turns(const void *left, const void *right)
{
	const struct turn *a = left, *b = right;

	if (a->lock != b->lock)
		return a->lock < b->lock ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->is_end - b->is_end;
}

/* From one turn of a lock to the next its owner is the same. */
static struct sym_error *add_turns(struct searching *searching, const struct turn *turns,
				   size_t count)
{
	struct held held = { 0 };
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i + 1 < count; i++) {
		if (held.lock != turns[i].lock)
			held = (struct held){ .lock = turns[i].lock };
		if (!turns[i].is_end)
			held.waiters++;
		else if (held.waiters)
			held.waiters--;
		if (turns[i].owner_tid)
			held.tid = turns[i].owner_tid;
		held.begin_ns = turns[i].time_ns;
		held.end_ns = turns[i + 1].time_ns;
		if (turns[i + 1].lock == held.lock && held.waiters && held.tid)
			error = add_held(searching, &held);
	}
	return error;
}

static struct sym_error *add_waits(struct searching *searching, const struct event_report *report)
{
	struct turn *turns AUTO_FREE = calloc(2 * report->lock_wait_count + 1, sizeof(*turns));
	size_t count = 0;

	if (!turns)
		return &sym_error_no_memory;
	for (size_t i = 0; i < report->lock_wait_count; i++) {
		const struct lock_wait *wait = &report->lock_waits[i];

		turns[count++] =
			(struct turn){ wait->lock, wait->begin_ns, wait->owner_tid, false };
		turns[count++] = (struct turn){ wait->lock, wait->end_ns, wait->tid, true };
	}
	qsort(turns, count, sizeof(*turns), compare_turns);
	return add_turns(searching, turns, count);
}

/* ---- sums ------------------------------------------------------------------------------------
 */

static int compare_places(const void *left, const void *right)
{
	const struct owner_place *a = left, *b = right;

	if (a->lock != b->lock)
		return a->lock < b->lock ? -1 : 1;
	if (a->where != b->where)
		return a->where < b->where ? -1 : 1;
	return (a->innermost > b->innermost) - (a->innermost < b->innermost);
}

static int compare_times(const void *left, const void *right)
{
	const struct owner_place *a = left, *b = right;

	if (a->lock != b->lock)
		return a->lock < b->lock ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns > b->time_ns ? -1 : 1;
	return compare_places(a, b);
}

static void add_up(struct lock_owners *owners)
{
	size_t kept = 0;

	if (!owners->count)
		return;
	qsort(owners->places, owners->count, sizeof(*owners->places), compare_places);
	for (size_t i = 1; i < owners->count; i++) {
		if (compare_places(&owners->places[kept], &owners->places[i]))
			owners->places[++kept] = owners->places[i];
		else
			owners->places[kept].time_ns += owners->places[i].time_ns;
	}
	owners->count = kept + 1;
	qsort(owners->places, owners->count, sizeof(*owners->places), compare_times);
}

struct sym_error *lock_owners_make(const struct profile *profile, struct lock_owners *ret)
{
	uint32_t *groups AUTO_FREE = frame_groups_make(profile->frames);
	struct thread_span *spans AUTO_FREE = calloc(profile->span_count + 1, sizeof(*spans));
	struct searching searching = { .profile = profile, .groups = groups, .spans = spans };
	const struct event_report *report = profile->report;
	struct sym_error *error = NULL;

	*ret = (struct lock_owners){ 0 };
	if (!groups || !spans)
		return &sym_error_no_memory;
	for (size_t i = 0; i < profile->span_count; i++)
		spans[i] = (struct thread_span){
			(uint64_t)profile->threads.threads[profile->spans[i].thread].tid,
			&profile->spans[i]
		};
	qsort(spans, profile->span_count, sizeof(*spans), compare_spans);
	if (report)
		error = add_waits(&searching, report);
	if (error) {
		lock_owners_deinit(&searching.owners);
		return error;
	}
	add_up(&searching.owners);
	*ret = searching.owners;
	return NULL;
}

void lock_owners_deinit(struct lock_owners *owners)
{
	free(owners->places);
	*owners = (struct lock_owners){ 0 };
}

const struct owner_place *lock_owners_find(const struct lock_owners *owners,
					   const struct event_row *lock, double *share_ret)
{
	const struct owner_place *found = NULL;
	uint64_t total_ns = 0;

	for (size_t i = 0; i < owners->count; i++) {
		const struct owner_place *place = &owners->places[i];

		if (place->lock != lock)
			continue;
		total_ns += place->time_ns;
		if (!found)
			found = place;
	}
	*share_ret = total_ns ? (double)found->time_ns / (double)total_ns : 0;
	return found;
}
