/* SPDX-License-Identifier: MIT */
#include "mapgen/view/view.h"

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/view/frame_groups.h"

const char *view_source_file(const struct view *view, const struct profile_frame *frame)
{
	return view->urls && frame->url && *frame->url ? frame->url : frame->file;
}

const char *view_kind_name(enum view_kind kind)
{
	static const char *const names[VIEW_KINDS] = {
		"summary",    "cpu",   "off-cpu",    "threads", "gc",     "alloc",    "exceptions",
		"contention", "waits", "threadpool", "jit",     "events", "counters",
	};

	return kind < VIEW_KINDS ? names[kind] : "";
}

/* Samples are better than ticks where both were recorded: they are random. */
static uint32_t find_allocations(const struct profile *profile)
{
	uint32_t event = profile_find_event(profile, PROFILE_ALLOCATION_SAMPLES);

	return event != UINT32_MAX ? event : profile_find_event(profile, PROFILE_ALLOCATION_TICKS);
}

static uint32_t find_runtime_event(const struct profile *profile, enum view_kind kind)
{
	static const enum profile_event_kind kinds[VIEW_KINDS] = {
		[VIEW_GC] = PROFILE_GC,
		[VIEW_EXCEPTIONS] = PROFILE_EXCEPTIONS,
		[VIEW_CONTENTION] = PROFILE_CONTENTION,
		[VIEW_WAITS] = PROFILE_WAITS,
		[VIEW_THREADPOOL] = PROFILE_POOL,
		[VIEW_JIT] = PROFILE_JIT,
		[VIEW_EVENTS] = PROFILE_RUNTIME_EVENTS,
	};

	if (kind == VIEW_COUNTERS)
		return UINT32_MAX;
	return kind == VIEW_ALLOC ? find_allocations(profile)
				  : profile_find_event(profile, kinds[kind]);
}

uint32_t view_find_event(const struct profile *profile, enum view_kind kind)
{
	uint32_t event;

	if (kind == VIEW_OFF_CPU)
		return profile_find_event(profile, PROFILE_OFF_CPU);
	if (kind >= VIEW_GC)
		return find_runtime_event(profile, kind);
	event = profile_find_event(profile, PROFILE_CPU);
	return event != UINT32_MAX ? event : profile_find_event(profile, PROFILE_COUNTED);
}

const char *view_frame_text(const struct view *view, const struct profile_frame *frame,
			    struct buf *text)
{
	buf_clear(text);
	frame_text_append(text, frame, view->names);
	if (view->by == TOTALS_BY_LINE && frame->line) {
		buf_append_string(text, " (");
		frame_text_place(text, frame);
		buf_append_char(text, ')');
	}
	return buf_string(text);
}

const char *view_frame_text_fit(const struct view *view, const struct profile_frame *frame,
				size_t width, struct buf *text)
{
	buf_clear(text);
	frame_text_fit(text, frame, view->names, width);
	return buf_string(text);
}

struct sym_error *view_write_stacks(const struct view *view, view_write_fn *write, FILE *to)
{
	uint32_t *groups AUTO_FREE = frame_groups_make(view->profile->frames);
	struct selection selection;
	struct sym_error *error;

	if (!groups)
		return &sym_error_no_memory;
	if (view->event == UINT32_MAX)
		return NULL;
	error = selection_make(view->profile, view->event, &view->selection, &selection);
	if (error)
		return error;
	error = write(view, &selection, groups, to);
	selection_deinit(&selection);
	return error;
}
