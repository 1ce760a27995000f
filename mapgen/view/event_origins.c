/* SPDX-License-Identifier: MIT */
#include "mapgen/view/event_origins.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/error.h"
#include "mapgen/view/frame_groups.h"
#include "mapgen/view/frame_text.h"

void event_origins_deinit(struct event_origins *origins)
{
	free(origins->items);
	free(origins->subjects);
	*origins = (struct event_origins){ 0 };
}

uint32_t event_origins_where(const struct frame_table *table, const uint32_t *frames, size_t count)
{
	uint32_t method = FRAME_NONE, managed = FRAME_NONE, innermost = FRAME_NONE;

	for (size_t i = count; i > 0; i--) {
		const struct profile_frame *frame = frame_table_at(table, frames[i - 1]);

		if (frame->kind == FRAME_KIND_EVENT)
			continue;
		if (innermost == FRAME_NONE)
			innermost = frames[i - 1];
		if (!frame_text_is_framework(frame))
			return frames[i - 1];
		if (method == FRAME_NONE && frame_text_says_where(frame))
			method = frames[i - 1];
		if (managed == FRAME_NONE && frame_kind_is_managed(frame->kind))
			managed = frames[i - 1];
	}
	if (method != FRAME_NONE)
		return method;
	return managed != FRAME_NONE ? managed : innermost;
}

static int compare_keys(const void *left, const void *right)
{
	const struct event_origin *a = left, *b = right;

	if (a->leaf != b->leaf)
		return a->leaf < b->leaf ? -1 : 1;
	return (a->where > b->where) - (a->where < b->where);
}

static int compare_weights(const void *left, const void *right)
{
	const struct event_origin *a = left, *b = right;

	if (a->leaf != b->leaf)
		return a->leaf < b->leaf ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return (a->where > b->where) - (a->where < b->where);
}

static int compare_subjects(const void *left, const void *right)
{
	const struct event_subject *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return (a->leaf > b->leaf) - (a->leaf < b->leaf);
}

static void add_up(struct event_origins *origins)
{
	size_t kept = 0;

	qsort(origins->items, origins->count, sizeof(*origins->items), compare_keys);
	for (size_t i = 0; i < origins->count; i++) {
		struct event_origin *item = &origins->items[i], *same;

		if (!kept || compare_keys(&origins->items[kept - 1], item)) {
			origins->items[kept++] = *item;
			continue;
		}
		same = &origins->items[kept - 1];
		same->count += item->count;
		same->weight += item->weight;
		if (item->longest > same->longest)
			same->longest = item->longest;
	}
	origins->count = kept;
	qsort(origins->items, origins->count, sizeof(*origins->items), compare_weights);
}

static void make_subjects(struct event_origins *origins)
{
	struct event_subject *subject = NULL;

	for (size_t i = 0; i < origins->count; i++) {
		const struct event_origin *item = &origins->items[i];

		if (!subject || subject->leaf != item->leaf) {
			subject = &origins->subjects[origins->subject_count++];
			*subject = (struct event_subject){ .leaf = item->leaf, .first = i };
		}
		subject->origin_count++;
		subject->count += item->count;
		subject->weight += item->weight;
		if (item->longest > subject->longest)
			subject->longest = item->longest;
	}
	qsort(origins->subjects, origins->subject_count, sizeof(*origins->subjects),
	      compare_subjects);
}

struct sym_error *event_origins_make(const struct selection *selection, struct event_origins *ret)
{
	const struct frame_table *table = selection->profile->frames;
	struct event_origins origins = { 0 };
	uint32_t *groups = frame_groups_make(table);

	origins.items = calloc(selection->count + 1, sizeof(*origins.items));
	origins.subjects = calloc(selection->count + 1, sizeof(*origins.subjects));
	if (!groups || !origins.items || !origins.subjects) {
		free(groups);
		event_origins_deinit(&origins);
		return &sym_error_no_memory;
	}
	for (size_t i = 0; i < selection->count; i++) {
		const struct selected *item = &selection->items[i];
		uint32_t where, leaf;

		if (!item->frame_count)
			continue;
		leaf = item->frames[item->frame_count - 1];
		where = event_origins_where(table, item->frames, item->frame_count - 1);
		origins.items[origins.count++] = (struct event_origin){
			.leaf = leaf,
			.where = where == FRAME_NONE ? where : groups[where],
			.count = item->count,
			.weight = item->weight,
			.longest = item->longest,
		};
	}
	free(groups);
	add_up(&origins);
	make_subjects(&origins);
	*ret = origins;
	return NULL;
}
