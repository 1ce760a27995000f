/* SPDX-License-Identifier: MIT */
#include "mapgen/view/waits.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/base/hash.h"
#include "libsym/error.h"
#include "mapgen/profile/wait_cause.h"
#include "mapgen/view/frame_groups.h"
#include "mapgen/view/frame_text.h"

enum {
	NOT_ASKED = 255,
};

struct wait_key {
	uint32_t where, caller, cause;
};

struct row_entry {
	UT_hash_handle hh;
	struct wait_key key;
	size_t row;
};

struct adding {
	const struct frame_table *frames;
	struct waits waits;
	struct row_entry *entries;
	uint8_t *causes;  /* by frame */
	uint32_t *groups; /* frame_groups.h */
};

void waits_deinit(struct waits *waits)
{
	free(waits->rows);
	*waits = (struct waits){ 0 };
}

static uint8_t cause_of_frame(const struct adding *adding, uint32_t frame)
{
	uint8_t *cause = &adding->causes[frame];

	if (*cause == NOT_ASKED)
		*cause = wait_cause_find(frame_table_at(adding->frames, frame)->name);
	return *cause;
}

static uint32_t cause_of(const struct adding *adding, const struct selected *item)
{
	uint8_t found = WAIT_CAUSE_UNKNOWN;

	for (uint32_t i = item->frame_count; i > 0; i--) {
		uint8_t cause = cause_of_frame(adding, item->frames[i - 1]);

		if (cause < found)
			found = cause;
	}
	return wait_cause_first_of_its_text(found);
}

/* The innermost function of the program, else of .NET, else of all but the kernel. */
static void find_where(const struct adding *adding, const struct selected *item,
		       struct wait_key *ret)
{
	uint32_t managed = FRAME_NONE, native = FRAME_NONE;

	ret->where = ret->caller = FRAME_NONE;
	for (uint32_t i = item->frame_count; i > 0; i--) {
		uint32_t number = adding->groups[item->frames[i - 1]];
		const struct profile_frame *frame = frame_table_at(adding->frames, number);

		if (native == FRAME_NONE && frame->kind != FRAME_KIND_KERNEL)
			native = number;
		if (managed == FRAME_NONE && frame_text_says_where(frame))
			managed = number;
		if (frame_text_is_framework(frame))
			continue;
		if (ret->where != FRAME_NONE && number != ret->where) {
			ret->caller = number;
			return;
		}
		ret->where = number;
	}
	if (ret->where == FRAME_NONE)
		ret->where = managed != FRAME_NONE ? managed : native;
	if (ret->where == FRAME_NONE && item->frame_count)
		ret->where = adding->groups[item->frames[item->frame_count - 1]];
}

static struct sym_error *find_row(struct adding *adding, const struct wait_key *key,
				  struct wait_row **ret)
{
	bool is_new;
	struct row_entry *entry =
		hash_find_or_add(&adding->entries, key, sizeof(*key),
				 offsetof(struct row_entry, key), sizeof(*entry), &is_new);

	if (!entry || !grow_items((void **)&adding->waits.rows, &adding->waits.capacity,
				  adding->waits.count, sizeof(*adding->waits.rows)))
		return &sym_error_no_memory;
	if (is_new)
		entry->row = adding->waits.count++;
	*ret = &adding->waits.rows[entry->row];
	if (is_new)
		**ret = (struct wait_row){ .where = key->where,
					   .caller = key->caller,
					   .cause = wait_cause_text((uint8_t)key->cause) };
	return NULL;
}

static struct sym_error *add_item(struct adding *adding, const struct selected *item)
{
	struct wait_key key = { .cause = cause_of(adding, item) };
	struct wait_row *row;
	struct sym_error *error;

	find_where(adding, item, &key);
	error = find_row(adding, &key, &row);
	if (error)
		return error;
	row->count += item->count;
	row->weight += item->weight;
	if (item->longest > row->longest)
		row->longest = item->longest;
	return NULL;
}

static int compare(const void *left, const void *right)
{
	const struct wait_row *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	if (a->where != b->where)
		return a->where < b->where ? -1 : 1;
	return (a->caller > b->caller) - (a->caller < b->caller);
}

static void adding_deinit(struct adding *adding)
{
	HASH_DESTROY(adding->entries, free);
	free(adding->causes);
	free(adding->groups);
}

struct sym_error *waits_make(const struct selection *selection, struct waits *ret)
{
	struct adding adding = { .frames = selection->profile->frames };
	size_t frame_count = frame_table_count(adding.frames);
	struct sym_error *error = NULL;

	adding.causes = malloc(frame_count + 1);
	adding.groups = frame_groups_make(adding.frames);
	if (!adding.causes || !adding.groups) {
		adding_deinit(&adding);
		return &sym_error_no_memory;
	}
	memset(adding.causes, NOT_ASKED, frame_count + 1);
	for (size_t i = 0; !error && i < selection->count; i++)
		error = add_item(&adding, &selection->items[i]);
	adding_deinit(&adding);
	if (error) {
		waits_deinit(&adding.waits);
		return error;
	}
	if (adding.waits.count)
		qsort(adding.waits.rows, adding.waits.count, sizeof(*adding.waits.rows), compare);
	*ret = adding.waits;
	return NULL;
}
