/* SPDX-License-Identifier: MIT */
#include "libsym/perf/latest_interval.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"

bool latest_interval_init(struct latest_interval *last, uint64_t *places, size_t count)
{
	*last = (struct latest_interval){ .places = places };
	if (!count)
		return true;
	ascending_sort(places, count);
	for (size_t i = 0; i < count; i++)
		if (!last->count || places[last->count - 1] != places[i])
			places[last->count++] = places[i];
	last->marks = calloc(2 * last->count, sizeof(*last->marks));
	last->highest = calloc(2 * last->count, sizeof(*last->highest));
	return last->marks && last->highest;
}

void latest_interval_deinit(struct latest_interval *last)
{
	free(last->places);
	free(last->marks);
	free(last->highest);
	*last = (struct latest_interval){ 0 };
}

/* Leaves of the places in a range: from `first` to before `past`, if any. */
struct leaves {
	size_t first, past;
};

static struct leaves leaves_of(const struct latest_interval *last, uint64_t start,
			       uint64_t size_bytes)
{
	uint64_t end = start + (size_bytes ? size_bytes : 1);

	return (struct leaves){
		last->count + ascending_count_below(last->places, last->count, start),
		last->count + (end < start ? last->count
					   : ascending_count_below(last->places, last->count, end)),
	};
}

static void raise_to(uint64_t *mark, uint64_t to)
{
	if (*mark < to)
		*mark = to;
}

/* Raises the marks of a leaf and its ancestors. */
static void raise_up(uint64_t *marks, size_t leaf, uint64_t to)
{
	for (size_t node = leaf; node; node /= 2)
		raise_to(&marks[node], to);
}

static void put_on(struct latest_interval *last, size_t node, uint64_t mark)
{
	raise_to(&last->marks[node], mark);
	raise_to(&last->highest[node], mark);
}

/* Each place between the first and the last is below exactly one of the marked nodes. */
void latest_interval_put(struct latest_interval *last, uint64_t start, uint64_t size_bytes,
			 uint64_t mark)
{
	struct leaves at = leaves_of(last, start, size_bytes);

	if (at.first >= at.past)
		return;
	/* The first or the last place shares the ancestors of each marked node. */
	raise_up(last->highest, at.first, mark);
	raise_up(last->highest, at.past - 1, mark);
	for (; at.first < at.past; at.first /= 2, at.past /= 2) {
		if (at.first % 2)
			put_on(last, at.first++, mark);
		if (at.past % 2)
			put_on(last, --at.past, mark);
	}
}

static uint64_t mark_of(const struct latest_interval *last, size_t leaf)
{
	uint64_t mark = 0;

	for (size_t node = leaf; node; node /= 2)
		raise_to(&mark, last->marks[node]);
	return mark;
}

uint64_t latest_interval_highest(const struct latest_interval *last, uint64_t start,
				 uint64_t size_bytes)
{
	struct leaves at = leaves_of(last, start, size_bytes);
	uint64_t mark = 0;

	if (at.first >= at.past)
		return 0;
	raise_to(&mark, mark_of(last, at.first));
	raise_to(&mark, mark_of(last, at.past - 1));
	for (; at.first < at.past; at.first /= 2, at.past /= 2) {
		if (at.first % 2)
			raise_to(&mark, last->highest[at.first++]);
		if (at.past % 2)
			raise_to(&mark, last->highest[--at.past]);
	}
	return mark;
}
