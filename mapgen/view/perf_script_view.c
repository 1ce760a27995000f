/* SPDX-License-Identifier: MIT */
/*
 * The format of perf script, for tools that read it: a line for each sample, then its frames,
 * innermost first, then an empty line.
 *
 *   COMM PID/TID [CPU] SECONDS.MICROSECONDS: PERIOD EVENT:
 *   	ADDRESS NAME (IMAGE)
 *
 * A profile has no addresses; the number of the frame stands there, and is the same for the same
 * function.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "libsym/base/address_table.h"
#include "libsym/base/buf.h"
#include "libsym/error.h"
#include "mapgen/view/view.h"

enum {
	NAME_LIMIT = 1 << 20,
	NS_PER_US = 1000,
	US_PER_SECOND = 1000000,
};

struct writing {
	const struct view *view;
	const uint32_t *groups;
	FILE *to;
	struct buf text;
};

static void put_frames(struct writing *writing, const struct selected *item)
{
	const struct frame_table *frames = writing->view->profile->frames;

	for (uint32_t i = item->frame_count; i > 0; i--) {
		const struct profile_frame *frame = frame_table_at(frames, item->frames[i - 1]);
		const char *name = view_frame_text(writing->view, frame, &writing->text);

		fprintf(writing->to, "\t%16x %s (%s)\n", writing->groups[item->frames[i - 1]] + 1,
			name ? name : "[unknown]",
			frame->kind == FRAME_KIND_KERNEL ? "[kernel.kallsyms]"
			: *frame->image                  ? frame->image
							 : "[jit]");
	}
	fputc('\n', writing->to);
}

static void put_sample(struct writing *writing, const struct selected *item, uint64_t time_ns,
		       uint64_t weight)
{
	const struct profile *profile = writing->view->profile;
	const struct profile_thread *thread = &profile->threads.threads[item->thread];
	uint64_t time_us = time_ns / NS_PER_US;

	fprintf(writing->to, "%s %d/%d [000] %" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " %s: \n",
		*thread->name ? thread->name : profile->threads.processes[thread->process].name,
		thread->pid, thread->tid, time_us / US_PER_SECOND, time_us % US_PER_SECOND, weight,
		profile->events[writing->view->event].name);
	put_frames(writing, item);
}

static uint64_t key_of(uint32_t thread, uint32_t stack)
{
	return ((uint64_t)thread << 32 | stack) + 1;
}

/* Samples that are selected, in the order of time. */
static struct sym_error *put_in_order(struct writing *writing, const struct selection *selection)
{
	const struct profile *profile = writing->view->profile;
	struct address_table items = { 0 };
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < selection->count; i++)
		if (!address_table_add(
			    &items, key_of(selection->items[i].thread, selection->items[i].stack),
			    &selection->items[i]))
			error = &sym_error_no_memory;
	for (size_t i = 0; !error && i < profile->sample_count; i++) {
		const struct profile_sample *sample = &profile->samples[i];
		const struct selected *item =
			sample->event == writing->view->event
				? address_table_find(&items, key_of(sample->thread, sample->stack))
				: NULL;

		if (item)
			put_sample(writing, item, sample->time_ns, sample->weight);
	}
	address_table_deinit(&items);
	return error;
}

/* Folded text has only the sums. */
static void put_sums(struct writing *writing, const struct selection *selection)
{
	for (size_t i = 0; i < selection->count; i++)
		for (uint64_t k = 0; k < selection->items[i].count; k++)
			put_sample(writing, &selection->items[i], 0, 1);
}

static struct sym_error *put_all(const struct view *view, const struct selection *selection,
				 const uint32_t *groups, FILE *to)
{
	struct writing writing = { .view = view, .groups = groups, .to = to };
	struct sym_error *error = NULL;

	buf_init(&writing.text, NAME_LIMIT);
	if (view->profile->sample_count)
		error = put_in_order(&writing, selection);
	else
		put_sums(&writing, selection);
	buf_deinit(&writing.text);
	return error;
}

struct sym_error *perf_script_view_write(const struct view *view, FILE *to)
{
	return view_write_stacks(view, put_all, to);
}
