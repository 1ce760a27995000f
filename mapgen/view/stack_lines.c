/* SPDX-License-Identifier: MIT */
/*
 * The text of each frame is made once. Entries that differ only in what the text does not have (the
 * tier of a method, the number of a thread) become one line.
 */
#include "mapgen/view/stack_lines.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/address_table.h"
#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/error.h"

enum {
	FRAME_TEXT_LIMIT = 1 << 30,
};

/* Offsets + 1 into one text; 0: not made yet. */
struct frame_texts {
	const struct view *view;
	size_t *offsets;
	struct buf all, one;
};

void stack_lines_deinit(struct stack_lines *lines)
{
	free(lines->items);
	free(lines->text);
	*lines = (struct stack_lines){ 0 };
}

/* Replaces characters in a name that separate frames or lines. */
static void append_clean(struct buf *text, const char *name)
{
	for (const char *c = name; *c; c++)
		buf_append_char(text, *c == ';' ? ':' : (unsigned char)*c < 0x20 ? ' ' : *c);
}

static const char *frame_text(struct frame_texts *texts, uint32_t frame)
{
	const struct profile_frame *named = frame_table_at(texts->view->profile->frames, frame);
	const char *name;

	if (!texts->offsets[frame]) {
		texts->offsets[frame] = texts->all.size_bytes + 1;
		name = view_frame_text(texts->view, named, &texts->one);
		append_clean(&texts->all, name ? name : "");
		if (named->kind == FRAME_KIND_KERNEL)
			buf_append_string(&texts->all, "_[k]");
		buf_append_char(&texts->all, '\0');
	}
	return texts->all.failure ? "" : texts->all.data + texts->offsets[frame] - 1;
}

static void append_line(struct frame_texts *texts, const struct selected *item, struct buf *text)
{
	const struct thread_table *threads = &texts->view->profile->threads;
	const struct profile_thread *thread = &threads->threads[item->thread];
	const char *process = threads->processes[thread->process].name;

	append_clean(text, *process ? process : "[unknown]");
	if (*thread->name) {
		buf_append_char(text, ';');
		append_clean(text, thread->name);
	}
	for (uint32_t i = 0; i < item->frame_count; i++) {
		buf_append_char(text, ';');
		buf_append_string(text, frame_text(texts, item->frames[i]));
	}
	buf_append_char(text, '\0');
}

/* ---- threads of one name --------------------------------------------------------------------- */

struct thread_name {
	uint32_t process;
	const char *name;
	uint32_t thread;
};

static int compare_threads(const void *left, const void *right)
{
	const struct thread_name *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	return strcmp(a->name, b->name);
}

/* For each thread one that has its process and its name; heap. */
static uint32_t *group_threads(const struct thread_table *threads)
{
	size_t count = threads->thread_count, first = 0;
	struct thread_name *names AUTO_FREE = calloc(count + 1, sizeof(*names));
	uint32_t *groups = calloc(count + 1, sizeof(*groups));

	if (!names || !groups) {
		free(groups);
		return NULL;
	}
	for (uint32_t i = 0; i < count; i++)
		names[i] = (struct thread_name){ threads->threads[i].process,
						 threads->threads[i].name, i };
	if (count)
		qsort(names, count, sizeof(*names), compare_threads);
	for (size_t i = 0; i < count; i++) {
		if (compare_threads(&names[first], &names[i]))
			first = i;
		groups[names[i].thread] = names[first].thread;
	}
	return groups;
}

/* Joins items with the same stack and the same thread name, before their text is made. */
static struct sym_error *join_threads(struct selection *selection)
{
	uint32_t *groups AUTO_FREE = group_threads(&selection->profile->threads);
	struct address_table known = { 0 };
	size_t kept = 0;

	if (!groups)
		return &sym_error_no_memory;
	for (size_t i = 0; i < selection->count; i++) {
		const struct selected *item = &selection->items[i];
		uint64_t key = ((uint64_t)groups[item->thread] << 32 | item->stack) + 1;
		struct range_slot *slot = address_table_slot(&known, key);
		struct selected *same;

		if (!slot) {
			address_table_deinit(&known);
			return &sym_error_no_memory;
		}
		if (!slot->value) {
			selection->items[kept++] = *item;
			slot->value = (void *)(uintptr_t)kept;
			continue;
		}
		same = &selection->items[(uintptr_t)slot->value - 1];
		same->count += item->count;
		same->weight += item->weight;
	}
	selection->count = kept;
	address_table_deinit(&known);
	return NULL;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int compare(const void *left, const void *right)
{
	return strcmp(((const struct stack_line *)left)->text,
		      ((const struct stack_line *)right)->text);
}

static void join_equal(struct stack_lines *lines)
{
	size_t kept = 0;

	if (lines->count)
		qsort(lines->items, lines->count, sizeof(*lines->items), compare);
	for (size_t i = 0; i < lines->count; i++) {
		struct stack_line *last = kept ? &lines->items[kept - 1] : NULL;

		if (!last || strcmp(last->text, lines->items[i].text) != 0) {
			lines->items[kept++] = lines->items[i];
			continue;
		}
		last->count += lines->items[i].count;
		last->weight += lines->items[i].weight;
	}
	lines->count = kept;
}

static struct sym_error *make_lines(struct frame_texts *texts, const struct selection *selection,
				    struct stack_lines *ret)
{
	size_t *offsets AUTO_FREE = calloc(selection->count + 1, sizeof(*offsets));
	struct buf text;

	ret->items = calloc(selection->count + 1, sizeof(*ret->items));
	if (!offsets || !ret->items)
		return &sym_error_no_memory;
	buf_init(&text, SIZE_MAX);
	for (size_t i = 0; i < selection->count; i++) {
		offsets[i] = text.size_bytes;
		append_line(texts, &selection->items[i], &text);
		ret->items[i].count = selection->items[i].count;
		ret->items[i].weight = selection->items[i].weight;
	}
	if (text.failure || texts->all.failure) {
		buf_deinit(&text);
		return &sym_error_no_memory;
	}
	ret->count = selection->count;
	ret->text = text.data;
	for (size_t i = 0; i < ret->count; i++)
		ret->items[i].text = ret->text + offsets[i];
	join_equal(ret);
	return NULL;
}

struct sym_error *stack_lines_make(const struct view *view, struct stack_lines *ret)
{
	struct frame_texts texts = { .view = view };
	struct selection selection = { 0 };
	struct sym_error *error;

	*ret = (struct stack_lines){ 0 };
	if (view->event == UINT32_MAX)
		return NULL;
	error = selection_make(view->profile, view->event, &view->selection, &selection);
	if (!error)
		error = join_threads(&selection);
	if (error) {
		selection_deinit(&selection);
		return error;
	}
	buf_init(&texts.all, FRAME_TEXT_LIMIT);
	buf_init(&texts.one, FRAME_TEXT_LIMIT);
	texts.offsets =
		calloc(frame_table_count(view->profile->frames) + 1, sizeof(*texts.offsets));
	error = texts.offsets ? make_lines(&texts, &selection, ret) : &sym_error_no_memory;
	free(texts.offsets);
	buf_deinit(&texts.all);
	buf_deinit(&texts.one);
	selection_deinit(&selection);
	if (error)
		stack_lines_deinit(ret);
	return error;
}
