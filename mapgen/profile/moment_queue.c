/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/moment_queue.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/error.h"

enum {
	MOST_WAITING = 1 << 20, /* without a round */
};

void moment_queue_deinit(struct moment_queue *queue)
{
	free(queue->items);
	queue->items = NULL;
	queue->count = queue->capacity = 0;
}

static int compare(const void *left, const void *right)
{
	const struct moment *a = left, *b = right;

	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

/* Most input is in order, or nearly. */
static void put_in_order(struct moment_queue *queue)
{
	for (size_t i = 1; i < queue->count; i++)
		if (queue->items[i - 1].time_ns > queue->items[i].time_ns) {
			qsort(queue->items, queue->count, sizeof(*queue->items), compare);
			break;
		}
}

/* Hands over the first `count`; the others stay. */
static struct sym_error *hand_over(struct moment_queue *queue, size_t count)
{
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < count; i++)
		error = queue->take(queue->context, &queue->items[i]);
	if (count)
		memmove(queue->items, queue->items + count,
			(queue->count - count) * sizeof(*queue->items));
	queue->count -= count;
	return error;
}

struct sym_error *moment_queue_add(struct moment_queue *queue, const struct moment *moment)
{
	struct moment *kept;

	if (queue->count == MOST_WAITING && !queue->keeps_all) {
		struct sym_error *error;

		put_in_order(queue);
		error = hand_over(queue, MOST_WAITING / 2);
		if (error)
			return error;
	}
	if (!grow_items((void **)&queue->items, &queue->capacity, queue->count,
			sizeof(*queue->items)))
		return &sym_error_no_memory;
	kept = &queue->items[queue->count++];
	*kept = *moment;
	kept->number = queue->next_number++;
	if (moment->time_ns > queue->newest_ns)
		queue->newest_ns = moment->time_ns;
	return NULL;
}

struct sym_error *moment_queue_end_round(struct moment_queue *queue)
{
	uint64_t limit = queue->round_ns;
	size_t count = 0;

	if (queue->keeps_all)
		return NULL;
	put_in_order(queue);
	while (count < queue->count && queue->items[count].time_ns <= limit)
		count++;
	queue->round_ns = queue->newest_ns;
	return hand_over(queue, count);
}

struct sym_error *moment_queue_finish(struct moment_queue *queue)
{
	put_in_order(queue);
	return hand_over(queue, queue->count);
}
