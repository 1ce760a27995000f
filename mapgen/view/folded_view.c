/* SPDX-License-Identifier: MIT */
/*
 * Folded text: PROCESS;THREAD;FRAME;... and a number. Stacks that differ only in what the text does
 * not have (the tier of a method, the number of a thread) become one line.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/hash.h"
#include "libsym/error.h"
#include "mapgen/view/flame_tree.h"
#include "mapgen/view/view.h"

enum {
	NS_PER_US = 1000,
	NAME_LIMIT = 1 << 30,
};

struct folded_line {
	UT_hash_handle hh;
	uint64_t count, weight;
	char text[];
};

struct folding {
	const struct view *view;
	char **frames; /* text of each frame, which is made once; NULL: not yet */
	struct folded_line *lines;
	struct buf line, name;
};

/* Replaces characters in a name that separate frames or lines. */
static void append_clean(struct buf *text, const char *name)
{
	for (const char *c = name; *c; c++)
		buf_append_char(text, *c == ';' ? ':' : (unsigned char)*c < 0x20 ? ' ' : *c);
}

static const char *frame_text(struct folding *folding, uint32_t frame)
{
	const struct profile_frame *named = frame_table_at(folding->view->profile->frames, frame);
	struct buf text;

	if (!folding->frames[frame]) {
		buf_init(&text, NAME_LIMIT);
		append_clean(&text, view_frame_text(folding->view, named, &folding->name) ?: "");
		if (named->kind == FRAME_KIND_KERNEL)
			buf_append_string(&text, "_[k]");
		folding->frames[frame] = buf_steal(&text, NULL);
		buf_deinit(&text);
	}
	return folding->frames[frame];
}

/* A thread without a name is left out. */
static struct sym_error *add_item(struct folding *folding, const struct selected *item)
{
	const struct thread_table *threads = &folding->view->profile->threads;
	const struct profile_thread *thread = &threads->threads[item->thread];
	const char *process = threads->processes[thread->process].name, *frame = "";
	struct buf *text = &folding->line;
	struct folded_line *line = NULL;

	buf_clear(text);
	append_clean(text, *process ? process : "[unknown]");
	if (*thread->name) {
		buf_append_char(text, ';');
		append_clean(text, thread->name);
	}
	for (uint32_t i = 0; frame && i < item->frame_count; i++) {
		frame = frame_text(folding, item->frames[i]);
		buf_append_char(text, ';');
		buf_append_string(text, frame ?: "");
	}
	if (frame && !text->failure)
		line = hash_find_or_add(&folding->lines, text->data, text->size_bytes,
					offsetof(struct folded_line, text),
					sizeof(*line) + text->size_bytes + 1, NULL);
	if (!line)
		return &sym_error_no_memory;
	line->count += item->count;
	line->weight += item->weight;
	return NULL;
}

static int compare(const struct folded_line *a, const struct folded_line *b)
{
	return strcmp(a->text, b->text);
}

static void put_lines(struct folding *folding, const struct profile_event *event, FILE *to)
{
	bool is_us = flame_tree_is_time(event);
	bool is_bytes = event->unit == PROFILE_UNIT_BYTES;

	HASH_SORT(folding->lines, compare);
	for (const struct folded_line *line = folding->lines; line; line = line->hh.next) {
		uint64_t value = is_us      ? line->weight / NS_PER_US
				 : is_bytes ? line->weight
					    : line->count;

		if (value)
			fprintf(to, "%s %" PRIu64 "\n", line->text, value);
	}
}

struct sym_error *folded_view_write(const struct view *view, FILE *to)
{
	struct folding folding = { .view = view };
	struct selection selection = { 0 };
	size_t frame_count = frame_table_count(view->profile->frames);
	struct sym_error *error = NULL;

	if (view->event == UINT32_MAX)
		return NULL;
	buf_init(&folding.line, SIZE_MAX);
	buf_init(&folding.name, NAME_LIMIT);
	folding.frames = calloc(frame_count + 1, sizeof(*folding.frames));
	error = folding.frames
			? selection_make(view->profile, view->event, &view->selection, &selection)
			: &sym_error_no_memory;
	for (size_t i = 0; !error && i < selection.count; i++)
		error = add_item(&folding, &selection.items[i]);
	if (!error)
		put_lines(&folding, &view->profile->events[view->event], to);
	for (size_t i = 0; folding.frames && i < frame_count; i++)
		free(folding.frames[i]);
	free(folding.frames);
	HASH_DESTROY(folding.lines, free);
	buf_deinit(&folding.line);
	buf_deinit(&folding.name);
	selection_deinit(&selection);
	return error;
}
