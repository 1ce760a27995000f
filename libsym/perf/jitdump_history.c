/* SPDX-License-Identifier: MIT */
/*
 * A segment tree over the places where stays begin or end.
 * A stay is in the lists of the few nodes that together are its range.
 * So all stays at an address are in the lists of one leaf and its ancestors.
 * Each list is ordered by time.
 * A look-up is a binary search in each of some twenty lists, even with thousands of stays at one
 * place.
 */
#include "libsym/perf/jitdump_history.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"
#include "libsym/base/cleanup.h"
#include "libsym/index/index_sort.h"
#include "libsym/limits.h"

struct jitdump_history {
	struct jitdump_stay *stays;
	size_t count;
	uint64_t *bounds; /* ascending, each once; leaf i is [bounds[i], bounds[i + 1]) */
	size_t leaf_count;
	/*
	 * List of node n: numbers[firsts[n]] up to numbers[firsts[n + 1]]. Node 1 is the root, the
	 * children of n are 2n and 2n + 1, leaf i is leaf_count + i.
	 */
	size_t *firsts;
	uint32_t *numbers;
};

void jitdump_history_destroy(struct jitdump_history *history)
{
	if (!history)
		return;
	free(history->stays);
	free(history->bounds);
	free(history->firsts);
	free(history->numbers);
	free(history);
}

DEFINE_GUARD(jitdump_history, struct jitdump_history *, jitdump_history_destroy)

/* Number of bounds at or below `address`. */
static size_t bounds_up_to(const struct jitdump_history *history, uint64_t address)
{
	return ascending_items_up_to(history->bounds, history->leaf_count + 1,
				     sizeof(*history->bounds), address);
}

static bool set_bounds(struct jitdump_history *history)
{
	size_t count = 2 * history->count, kept = 0;
	uint64_t *all AUTO_FREE = calloc(count, sizeof(*all));
	uint32_t *order AUTO_FREE = NULL;

	history->bounds = calloc(count, sizeof(*history->bounds));
	if (!all || !history->bounds)
		return false;
	for (size_t i = 0; i < history->count; i++) {
		all[2 * i] = history->stays[i].start;
		all[2 * i + 1] = history->stays[i].start + history->stays[i].size_bytes;
	}
	order = index_sort(all, sizeof(*all), count);
	if (!order)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!kept || history->bounds[kept - 1] != all[order[i]])
			history->bounds[kept++] = all[order[i]];
	history->leaf_count = kept - 1;
	return true;
}

/* Nodes that together are the range of a stay; at most two on each level. */
static size_t nodes_of(const struct jitdump_history *history, const struct jitdump_stay *stay,
		       size_t nodes[2 * 64])
{
	size_t low = bounds_up_to(history, stay->start) - 1 + history->leaf_count;
	size_t high =
		bounds_up_to(history, stay->start + stay->size_bytes) - 1 + history->leaf_count;
	size_t count = 0;

	for (; low < high; low /= 2, high /= 2) {
		if (low & 1)
			nodes[count++] = low++;
		if (high & 1)
			nodes[count++] = --high;
	}
	return count;
}

static bool set_lists(struct jitdump_history *history)
{
	size_t node_count = 2 * history->leaf_count, nodes[2 * 64], total = 0;

	history->firsts = calloc(node_count + 2, sizeof(*history->firsts));
	if (!history->firsts)
		return false;
	/* First the length of each list, stored two places further on, ... */
	for (size_t i = 0; i < history->count; i++) {
		size_t count = nodes_of(history, &history->stays[i], nodes);

		total += count;
		if (total > LIMIT_HISTORY_ENTRIES)
			return false;
		for (size_t j = 0; j < count; j++)
			history->firsts[nodes[j] + 2]++;
	}
	history->numbers = calloc(total + 1, sizeof(*history->numbers));
	if (!history->numbers)
		return false;
	/*
	 * ... then its start, stored one place further on. It advances to the end while the list is
	 * filled.
	 */
	for (size_t i = 2; i < node_count + 2; i++)
		history->firsts[i] += history->firsts[i - 1];
	for (size_t i = 0; i < history->count; i++) {
		size_t count = nodes_of(history, &history->stays[i], nodes);

		for (size_t j = 0; j < count; j++)
			history->numbers[history->firsts[nodes[j] + 1]++] = (uint32_t)i;
	}
	return true;
}

struct jitdump_history *jitdump_history_create(struct jitdump_stay *stays, size_t count)
{
	struct jitdump_history *history GUARDED(jitdump_history) = calloc(1, sizeof(*history));

	if (!history) {
		free(stays);
		return NULL;
	}
	history->stays = stays;
	history->count = count;
	if (count && (!set_bounds(history) || !set_lists(history)))
		return NULL;
	return STEAL(history);
}

/* Number of stays that had begun at `timestamp`. */
static size_t begun_by(const struct jitdump_history *history, uint64_t timestamp)
{
	return ascending_items_up_to(history->stays, history->count, sizeof(*history->stays),
				     timestamp);
}

/* Number of entries of an ascending list that are below `number`. */
static size_t count_below(const uint32_t *list, size_t count, size_t number)
{
	return ASCENDING_COUNT(count, i, list[i] < number);
}

/* The last of the first `begun` stays at an address. Without one: the next stay, if `or_next`. */
static const struct jitdump_stay *find_among(const struct jitdump_history *history,
					     uint64_t address, size_t begun, bool or_next)
{
	size_t leaf = bounds_up_to(history, address), last = SIZE_MAX, next = SIZE_MAX;

	if (!leaf || leaf > history->leaf_count)
		return NULL;
	for (size_t node = leaf - 1 + history->leaf_count; node; node /= 2) {
		const uint32_t *list = history->numbers + history->firsts[node];
		size_t count = history->firsts[node + 1] - history->firsts[node];
		size_t below = count_below(list, count, begun);

		if (below && (last == SIZE_MAX || list[below - 1] > last))
			last = list[below - 1];
		if (below < count && list[below] < next)
			next = list[below];
	}
	if (last == SIZE_MAX && or_next)
		last = next;
	return last == SIZE_MAX ? NULL : &history->stays[last];
}

const struct jitdump_stay *jitdump_history_find(const struct jitdump_history *history,
						uint64_t address, uint64_t timestamp)
{
	size_t begun = begun_by(history, timestamp);

	return begun ? find_among(history, address, begun, true) : NULL;
}

const struct jitdump_stay *jitdump_history_before(const struct jitdump_history *history,
						  uint64_t address, size_t count)
{
	return count ? find_among(history, address, count, false) : NULL;
}
