/* SPDX-License-Identifier: MIT */
/*
 * A view: a profile, the part of it that is shown, and how. The writers take one, and write to a
 * stream.
 */
#ifndef MAPGEN_VIEW_VIEW_H
#define MAPGEN_VIEW_VIEW_H

#include <stdio.h>

#include "libsym/base/buf.h"
#include "mapgen/profile/profile.h"
#include "mapgen/view/frame_text.h"
#include "mapgen/view/selection.h"
#include "mapgen/view/totals.h"

enum view_kind {
	VIEW_SUMMARY = 0,
	VIEW_CPU,
	VIEW_OFF_CPU,
	VIEW_THREADS,
	/* Events of the runtime: event_view.h */
	VIEW_GC,
	VIEW_ALLOC,
	VIEW_EXCEPTIONS,
	VIEW_CONTENTION,
	VIEW_WAITS,
	VIEW_THREADPOOL,
	VIEW_JIT,
	VIEW_EVENTS,
	VIEW_COUNTERS,
	VIEW_KINDS,
};

struct view {
	const struct profile *profile;
	const char *input; /* as the user gave it */
	enum view_kind kind;
	enum totals_by by;
	bool has_by;    /* it was asked for */
	bool urls;      /* with lines, the URL of the file */
	uint32_t event; /* what is shown; UINT32_MAX: nothing of the kind is there */
	struct selection_opts selection;
	size_t top; /* rows at most; 0: all */
	enum frame_names names;
	size_t width; /* of the terminal; 0: lines are not cut */
};

/* How many of `count` rows are shown. */
static inline size_t view_shown_rows(const struct view *view, size_t count)
{
	return view->top && view->top < count ? view->top : count;
}

/* The source file of a frame with a line; with `urls` its URL, where that is known. */
const char *view_source_file(const struct view *view, const struct profile_frame *frame);

/* Its name on the command line and in JSON; static. */
const char *view_kind_name(enum view_kind kind);

/* The event of a view; UINT32_MAX when the profile has none of the kind. */
uint32_t view_find_event(const struct profile *profile, enum view_kind kind);

/* Name of a frame as the view wants it, by line with its place; lives until the next call with this
 * buffer. */
const char *view_frame_text(const struct view *view, const struct profile_frame *frame,
			    struct buf *text);
/* Name of a frame, in the short form where the other is longer than `width`. */
const char *view_frame_text_fit(const struct view *view, const struct profile_frame *frame,
				size_t width, struct buf *text);

/* Writes the stacks of a view; groups: frame_groups.h. */
typedef struct sym_error *view_write_fn(const struct view *view, const struct selection *selection,
					const uint32_t *groups, FILE *to);
/* Calls `write` with what is selected; not if there is nothing of the kind. */
struct sym_error *view_write_stacks(const struct view *view, view_write_fn *write, FILE *to)
	__attribute__((warn_unused_result));

/* For people. */
struct sym_error *text_view_write(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));
/* One object; units are in the names of its members. */
struct sym_error *json_view_write(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));
/* The rows of the table, with a line of headings. */
struct sym_error *csv_view_write(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));
/* For speedscope.app, for pprof, and as perf script prints samples. */
struct sym_error *speedscope_view_write(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));
struct sym_error *pprof_view_write(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));
struct sym_error *perf_script_view_write(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));
/* PROCESS;THREAD;FRAME;... COUNT: samples or events, microseconds of what is time off
 * the processor, bytes of allocations. */
struct sym_error *folded_view_write(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));

#endif
