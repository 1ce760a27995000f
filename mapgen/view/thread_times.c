/* SPDX-License-Identifier: MIT */
#include "mapgen/view/thread_times.h"

#include <stdlib.h>

#include "libsym/error.h"

void thread_times_deinit(struct thread_times *times)
{
	free(times->items);
	*times = (struct thread_times){ 0 };
}

static void add(struct thread_time *time, const struct profile_event *event,
		const struct selected *item)
{
	if (event->kind == PROFILE_OFF_CPU) {
		time->off_cpu_ns += item->weight;
		time->waits += item->count;
	} else if (event->kind == PROFILE_PREEMPTED) {
		time->preempted_ns += item->weight;
		time->preemptions += item->count;
	} else {
		time->cpu_ns += event->is_time ? item->weight : 0;
		time->samples += item->count;
	}
}

static struct sym_error *add_event(const struct view *view, uint32_t event,
				   struct thread_times *times)
{
	struct selection_opts opts = view->selection;
	struct selection selection;
	struct sym_error *error;

	if (event == UINT32_MAX)
		return NULL;
	opts.shows_idle = true;
	error = selection_make(view->profile, event, &opts, &selection);
	if (error)
		return error;
	for (size_t i = 0; i < selection.count; i++)
		add(&times->items[selection.items[i].thread], &view->profile->events[event],
		    &selection.items[i]);
	selection_deinit(&selection);
	return NULL;
}

static int compare(const void *left, const void *right)
{
	const struct thread_time *a = left, *b = right;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	if (a->off_cpu_ns != b->off_cpu_ns)
		return a->off_cpu_ns > b->off_cpu_ns ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

struct sym_error *thread_times_make(const struct view *view, struct thread_times *ret)
{
	const struct profile *profile = view->profile;
	struct thread_times times = { .count = profile->threads.thread_count };
	struct sym_error *error;
	size_t kept = 0;

	times.items = calloc(times.count + 1, sizeof(*times.items));
	if (!times.items)
		return &sym_error_no_memory;
	for (size_t i = 0; i < times.count; i++)
		times.items[i].thread = (uint32_t)i;
	error = add_event(view, view_find_event(profile, VIEW_CPU), &times);
	if (!error)
		error = add_event(view, profile_find_event(profile, PROFILE_OFF_CPU), &times);
	if (!error)
		error = add_event(view, profile_find_event(profile, PROFILE_PREEMPTED), &times);
	if (error) {
		thread_times_deinit(&times);
		return error;
	}
	for (size_t i = 0; i < times.count; i++)
		if (times.items[i].samples || times.items[i].waits || times.items[i].preemptions)
			times.items[kept++] = times.items[i];
	times.count = kept;
	if (kept)
		qsort(times.items, kept, sizeof(*times.items), compare);
	*ret = times;
	return NULL;
}
