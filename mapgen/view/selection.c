/* SPDX-License-Identifier: MIT */
#include "mapgen/view/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/error.h"
#include "mapgen/view/frame_text.h"

enum {
	TEXT_LIMIT = 1 << 20,
	UNKNOWN = 0,
	YES,
	NO,
};

/* Remembers the answers of the filters for each frame and stack. */
struct filter {
	const struct profile *profile;
	const struct selection_opts *opts;
	regex_t thread, function;
	bool has_thread, has_function;
	uint8_t *frames, *parked;
	uint8_t *hidden; /* threads */
	uint8_t *shown;
	struct buf text;
};

static struct sym_error *compile(regex_t *regex, const char *pattern, bool *has_ret)
{
	char why[128];
	int status;

	if (!pattern)
		return NULL;
	status = regcomp(regex, pattern, REG_EXTENDED | REG_NOSUB);
	if (status) {
		regerror(status, regex, why, sizeof(why));
		return sym_error_create(SYM_ERROR_ARGUMENT, "'%s' is no regular expression: %s",
					pattern, why);
	}
	*has_ret = true;
	return NULL;
}

static void filter_deinit(struct filter *filter)
{
	if (filter->has_thread)
		regfree(&filter->thread);
	if (filter->has_function)
		regfree(&filter->function);
	free(filter->frames);
	free(filter->parked);
	free(filter->hidden);
	free(filter->shown);
	buf_deinit(&filter->text);
}

static struct sym_error *filter_init(struct filter *filter)
{
	const struct profile *profile = filter->profile;
	const struct selection_opts *opts = filter->opts;
	size_t thread_count = profile->threads.thread_count + 1;
	struct sym_error *error = compile(&filter->thread, opts->thread, &filter->has_thread);

	buf_init(&filter->text, TEXT_LIMIT);
	if (!error)
		error = compile(&filter->function,
				opts->callers_of ? opts->callers_of : opts->callees_of,
				&filter->has_function);
	if (error)
		return error;
	filter->hidden = calloc(thread_count, 1);
	filter->shown = calloc(thread_count, 1);
	filter->frames = calloc(frame_table_count(profile->frames) + 1, 1);
	filter->parked = calloc(frame_table_stack_count(profile->frames) + 1, 1);
	return filter->hidden && filter->shown && filter->frames && filter->parked
		       ? NULL
		       : &sym_error_no_memory;
}

static bool is_wanted_thread(const struct filter *filter, uint32_t thread)
{
	const struct profile_thread *named = &filter->profile->threads.threads[thread];
	char number[16];

	if (!filter->has_thread)
		return true;
	snprintf(number, sizeof(number), "%d", named->tid);
	return !strcmp(number, filter->opts->thread) ||
	       !regexec(&filter->thread, named->name, 0, NULL, 0);
}

/* Short and full names are matched. */
static bool is_match(struct filter *filter, uint32_t frame)
{
	const struct profile_frame *named = frame_table_at(filter->profile->frames, frame);
	const char *text;
	bool matches;

	if (filter->frames[frame] != UNKNOWN)
		return filter->frames[frame] == YES;
	buf_clear(&filter->text);
	frame_text_short(&filter->text, named);
	text = buf_string(&filter->text);
	matches = (text && !regexec(&filter->function, text, 0, NULL, 0)) ||
		  !regexec(&filter->function, named->name, 0, NULL, 0);
	filter->frames[frame] = matches ? YES : NO;
	return matches;
}

static bool is_parked(struct filter *filter, uint32_t stack)
{
	if (filter->parked[stack] == UNKNOWN)
		filter->parked[stack] = profile_is_parked(filter->profile, stack) ? YES : NO;
	return filter->parked[stack] == YES;
}

/* Cuts the stack; false when the function is not in it. */
static bool cut_stack(struct filter *filter, struct selected *selected)
{
	if (!filter->has_function)
		return true;
	if (filter->opts->callers_of) {
		/* From where the thread began to the innermost call of it. */
		for (uint32_t i = selected->frame_count; i > 0; i--)
			if (is_match(filter, selected->frames[i - 1])) {
				selected->frame_count = i;
				return true;
			}
		return false;
	}
	for (uint32_t i = 0; i < selected->frame_count; i++)
		if (is_match(filter, selected->frames[i])) {
			selected->frames += i;
			selected->frame_count -= i;
			return true;
		}
	return false;
}

static void count_hidden(struct filter *filter, const struct profile_entry *entry,
			 struct selection *selection)
{
	selection->hidden_weight += entry->weight;
	selection->hidden_threads += !filter->hidden[entry->thread];
	filter->hidden[entry->thread] = 1;
}

static void select_entry(struct filter *filter, const struct profile_entry *entry,
			 struct selection *selection)
{
	const struct profile *profile = filter->profile;
	enum profile_event_kind kind = profile->events[entry->event].kind;
	struct selected selected = { .thread = entry->thread,
				     .stack = entry->stack,
				     .count = entry->count,
				     .weight = entry->weight,
				     .longest = entry->longest };
	size_t count;

	if (!is_wanted_thread(filter, entry->thread))
		return;
	if (kind == PROFILE_OFF_CPU && !filter->opts->shows_idle &&
	    is_parked(filter, entry->stack)) {
		count_hidden(filter, entry, selection);
		return;
	}
	selected.frames = frame_table_stack(profile->frames, entry->stack, &count);
	selected.frame_count = (uint32_t)count;
	if (!cut_stack(filter, &selected))
		return;
	selection->thread_count += !filter->shown[entry->thread];
	filter->shown[entry->thread] = 1;
	selection->total_count += entry->count;
	selection->total_weight += entry->weight;
	selection->items[selection->count++] = selected;
}

struct sym_error *selection_make(const struct profile *profile, uint32_t event,
				 const struct selection_opts *opts, struct selection *ret)
{
	struct selection selection = { .profile = profile, .event = event };
	struct filter filter = { .profile = profile, .opts = opts };
	struct sym_error *error = filter_init(&filter);

	selection.items = calloc(profile->entry_count + 1, sizeof(*selection.items));
	if (!error && !selection.items)
		error = &sym_error_no_memory;
	for (size_t i = 0; !error && i < profile->entry_count; i++)
		if (profile->entries[i].event == event)
			select_entry(&filter, &profile->entries[i], &selection);
	filter_deinit(&filter);
	if (error)
		selection_deinit(&selection);
	else
		*ret = selection;
	return error;
}

void selection_deinit(struct selection *selection)
{
	free(selection->items);
	*selection = (struct selection){ 0 };
}
