/* SPDX-License-Identifier: MIT */
#include "libsym/source/last_at.h"

#include <stdlib.h>

#include "libsym/base/ascending.h"

bool last_at_init(struct last_at *last, uint64_t *places, size_t count)
{
	*last = (struct last_at){ .places = places };
	if (!count)
		return true;
	ascending_sort(places, count);
	for (size_t i = 0; i < count; i++)
		if (!last->count || places[last->count - 1] != places[i])
			places[last->count++] = places[i];
	last->marks = calloc(2 * last->count, sizeof(*last->marks));
	return last->marks;
}

void last_at_deinit(struct last_at *last)
{
	free(last->places);
	free(last->marks);
	*last = (struct last_at){ 0 };
}

/* Every place between them is below exactly one of the nodes that are marked. */
void last_at_put(struct last_at *last, uint64_t start, uint64_t size_bytes, uint64_t mark)
{
	uint64_t end = start + (size_bytes ? size_bytes : 1);
	size_t first = last->count + ascending_count_below(last->places, last->count, start);
	size_t past =
		last->count +
		(end < start ? last->count : ascending_count_below(last->places, last->count, end));

	for (; first < past; first /= 2, past /= 2) {
		if (first % 2)
			last->marks[first++] = mark;
		if (past % 2)
			last->marks[--past] = mark;
	}
}

uint64_t last_at_find(const struct last_at *last, uint64_t place)
{
	size_t number = ascending_count_below(last->places, last->count, place);
	uint64_t mark = 0;

	if (number == last->count || last->places[number] != place)
		return 0;
	for (size_t node = last->count + number; node; node /= 2)
		if (last->marks[node] > mark)
			mark = last->marks[node];
	return mark;
}
