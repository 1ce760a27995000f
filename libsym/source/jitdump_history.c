/* SPDX-License-Identifier: MIT */
/*
 * A segment tree over the places where something begins or ends. A stay is in
 * the lists of the few nodes that together are its range, so what ever lay at
 * an address is in the lists of one leaf and of the nodes above it; each list is in
 * order of time. Thousands of stays at one place cost a look-up no more than
 * a binary search in each of some twenty lists.
 */
#include "libsym/source/jitdump_history.h"

#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/index_sort.h"
#include "libsym/limits.h"

struct jitdump_history {
	struct jitdump_stay *stays;
	size_t count;
	uint64_t *bounds; /* ascending, each once; leaf i is [bounds[i], bounds[i + 1]) */
	size_t leaf_count;
	/* Of node n: numbers[firsts[n]] up to numbers[firsts[n + 1]]. Node 1 is the root, the
	 * children of n are 2n and 2n+1, leaf i is leaf_count + i. */
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

/* The number of bounds that are not above `address`. */
static size_t bounds_up_to(const struct jitdump_history *history, uint64_t address)
{
	size_t low = 0, high = history->leaf_count + 1;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (history->bounds[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
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

/* The nodes that together are the range of a stay; at most two on each level. */
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
	/* How long each list is, two places further on, ... */
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
	/* ... then where it begins, one place further on, which moves to its end while it is
	 * filled. */
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

/* The number of stays that had begun by then. */
static size_t begun_by(const struct jitdump_history *history, uint64_t timestamp)
{
	size_t low = 0, high = history->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (history->stays[middle].timestamp <= timestamp)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* How many of an ascending list are below `number`. */
static size_t count_below(const uint32_t *list, size_t count, size_t number)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list[middle] < number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct jitdump_stay *jitdump_history_find(const struct jitdump_history *history,
						uint64_t address, uint64_t timestamp)
{
	size_t begun = begun_by(history, timestamp), leaf;
	size_t last = SIZE_MAX, next = SIZE_MAX;

	if (!begun)
		return NULL;
	leaf = bounds_up_to(history, address);
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
	if (last == SIZE_MAX)
		last = next;
	return last == SIZE_MAX ? NULL : &history->stays[last];
}
