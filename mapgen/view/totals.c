/* SPDX-License-Identifier: MIT */
#include "mapgen/view/totals.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/base/hash.h"
#include "libsym/error.h"

/* From the text that rows have in common to the row. */
struct row_key {
	UT_hash_handle hh;
	size_t row;
	char text[]; /* key NUL image */
};

struct adding {
	const struct selection *selection;
	enum totals_by by;
	struct totals totals;
	struct row_key *keys;
	size_t *rows_of_frames;  /* SIZE_MAX: not looked up yet */
	uint64_t *frame_weights; /* by frame: where it is innermost, its weight counts twice */
	uint64_t *seen;          /* by row: the stack that has counted it last, + 1 */
	size_t seen_capacity;
};

static void adding_deinit(struct adding *adding)
{
	HASH_DESTROY(adding->keys, free);
	free(adding->rows_of_frames);
	free(adding->frame_weights);
	free(adding->seen);
}

void totals_deinit(struct totals *totals)
{
	free(totals->rows);
	*totals = (struct totals){ 0 };
}

static struct sym_error *add_row(struct adding *adding, const char *key, const char *image,
				 size_t *ret)
{
	struct totals *totals = &adding->totals;
	size_t capacity = adding->seen_capacity;

	if (!grow_items((void **)&totals->rows, &totals->capacity, totals->count,
			sizeof(*totals->rows)) ||
	    !grow_items((void **)&adding->seen, &capacity, totals->count, sizeof(*adding->seen)))
		return &sym_error_no_memory;
	adding->seen_capacity = capacity;
	*ret = totals->count++;
	adding->seen[*ret] = 0;
	totals->rows[*ret] = (struct total_row){
		.key = key, .image = image, .frame = FRAME_NONE, .thread = UINT32_MAX
	};
	return NULL;
}

static struct sym_error *find_row(struct adding *adding, const char *key, const char *image,
				  size_t *ret)
{
	size_t key_bytes = strlen(key) + 1, size_bytes = key_bytes + strlen(image);
	char *text AUTO_FREE = malloc(size_bytes);
	struct sym_error *error = NULL;
	struct row_key *found;
	bool is_new;

	if (!text)
		return &sym_error_no_memory;
	memcpy(text, key, key_bytes);
	memcpy(text + key_bytes, image, size_bytes - key_bytes);
	found = hash_find_or_add(&adding->keys, text, size_bytes, offsetof(struct row_key, text),
				 sizeof(*found) + size_bytes, &is_new);
	if (!found)
		return &sym_error_no_memory;
	if (is_new)
		error = add_row(adding, key, image, &found->row);
	*ret = found->row;
	return error;
}

/* Image and place are one text. Without a line the row is that of the function. */
static struct sym_error *find_row_of_line(struct adding *adding, const struct profile_frame *named,
					  size_t *ret)
{
	char *text AUTO_FREE = NULL;
	struct sym_error *error;

	if (!named->line)
		return find_row(adding, named->name, named->image, ret);
	if (asprintf(&text, "%s\n%s\n%u\n%d", named->image, named->file, named->line,
		     (int)named->quality) < 0)
		return &sym_error_no_memory;
	error = find_row(adding, named->name, text, ret);
	if (!error)
		adding->totals.rows[*ret].image = named->image;
	return error;
}

static struct sym_error *row_of_frame(struct adding *adding, uint32_t frame, size_t *ret)
{
	const struct profile_frame *named =
		frame_table_at(adding->selection->profile->frames, frame);
	bool by_image = adding->by == TOTALS_BY_IMAGE;
	size_t *row = &adding->rows_of_frames[frame];
	struct sym_error *error = NULL;

	if (*row == SIZE_MAX && adding->by == TOTALS_BY_LINE)
		error = find_row_of_line(adding, named, row);
	else if (*row == SIZE_MAX)
		error = find_row(adding, by_image ? "" : named->name, named->image, row);
	*ret = *row;
	return error;
}

static void count_self(struct total_row *row, const struct selected *item)
{
	row->self_count += item->count;
	row->self_weight += item->weight;
}

static void count_total(struct total_row *row, const struct selected *item)
{
	row->total_count += item->count;
	row->total_weight += item->weight;
	if (item->longest > row->longest)
		row->longest = item->longest;
}

/* A function that was compiled more than once has the kind, and the line, of what has most. */
static void note_frame(struct adding *adding, struct total_row *row, uint32_t frame,
		       const struct selected *item, bool is_self)
{
	uint64_t *weight = &adding->frame_weights[frame];

	*weight += item->weight * (is_self ? 2 : 1);
	if (row->frame != FRAME_NONE && *weight <= row->frame_weight)
		return;
	row->frame = frame;
	row->frame_weight = *weight;
}

static struct sym_error *add_frames(struct adding *adding, const struct selected *item,
				    uint64_t number)
{
	for (uint32_t i = 0; i < item->frame_count; i++) {
		bool is_self = i + 1 == item->frame_count;
		struct sym_error *error;
		size_t row;

		error = row_of_frame(adding, item->frames[i], &row);
		if (error)
			return error;
		note_frame(adding, &adding->totals.rows[row], item->frames[i], item, is_self);
		if (is_self)
			count_self(&adding->totals.rows[row], item);
		if (adding->seen[row] == number + 1)
			continue;
		adding->seen[row] = number + 1;
		count_total(&adding->totals.rows[row], item);
	}
	return NULL;
}

static struct sym_error *add_thread(struct adding *adding, const struct selected *item)
{
	const struct thread_table *threads = &adding->selection->profile->threads;
	const struct profile_thread *thread = &threads->threads[item->thread];
	bool by_thread = adding->by == TOTALS_BY_THREAD;
	const char *name = by_thread ? thread->name : threads->processes[thread->process].name;
	char number[32];
	struct sym_error *error;
	struct total_row *row;
	size_t index;

	snprintf(number, sizeof(number), "%d/%d", thread->pid, by_thread ? thread->tid : 0);
	error = find_row(adding, name, number, &index);
	if (error)
		return error;
	row = &adding->totals.rows[index];
	row->image = "";
	if (row->thread == UINT32_MAX)
		row->thread = item->thread;
	count_self(row, item);
	count_total(row, item);
	return NULL;
}

/* Largest first; what is equally large by name, so that the order is always the same. */
static int compare(const void *left, const void *right)
{
	const struct total_row *a = left, *b = right;
	int order;

	if (a->self_weight != b->self_weight)
		return a->self_weight > b->self_weight ? -1 : 1;
	if (a->total_weight != b->total_weight)
		return a->total_weight > b->total_weight ? -1 : 1;
	order = strcmp(a->key, b->key);
	return order ? order : strcmp(a->image, b->image);
}

struct sym_error *totals_make(const struct selection *selection, enum totals_by by,
			      struct totals *ret)
{
	struct adding adding = { .selection = selection, .by = by };
	size_t frame_count = frame_table_count(selection->profile->frames) + 1;
	bool by_frame = by == TOTALS_BY_FUNCTION || by == TOTALS_BY_IMAGE || by == TOTALS_BY_LINE;
	struct sym_error *error = NULL;

	adding.rows_of_frames = malloc(frame_count * sizeof(*adding.rows_of_frames));
	adding.frame_weights = calloc(frame_count, sizeof(*adding.frame_weights));
	if (!adding.rows_of_frames || !adding.frame_weights) {
		adding_deinit(&adding);
		return &sym_error_no_memory;
	}
	for (size_t i = 0; i < frame_count; i++)
		adding.rows_of_frames[i] = SIZE_MAX;
	for (size_t i = 0; !error && i < selection->count; i++)
		error = by_frame ? add_frames(&adding, &selection->items[i], i)
				 : add_thread(&adding, &selection->items[i]);
	adding_deinit(&adding);
	if (error) {
		totals_deinit(&adding.totals);
		return error;
	}
	if (adding.totals.count)
		qsort(adding.totals.rows, adding.totals.count, sizeof(*adding.totals.rows),
		      compare);
	adding.totals.total_count = selection->total_count;
	adding.totals.total_weight = selection->total_weight;
	*ret = adding.totals;
	return NULL;
}
