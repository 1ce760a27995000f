/* SPDX-License-Identifier: MIT */
/*
 * The subjects of a selection of events (the innermost frame: a type, an exception, a lock), how
 * much of each, and the places where most of it comes from: the innermost functions that do not
 * belong to .NET.
 */
#ifndef MAPGEN_VIEW_EVENT_ORIGINS_H
#define MAPGEN_VIEW_EVENT_ORIGINS_H

#include "mapgen/view/selection.h"

struct event_origin {
	uint32_t leaf;  /* frame */
	uint32_t where; /* frame; FRAME_NONE: no stack */
	uint64_t count, weight, longest;
};

struct event_subject {
	uint32_t leaf;
	uint64_t count, weight, longest;
	size_t first, origin_count; /* largest weight first */
};

struct event_origins {
	struct event_origin *items;
	size_t count;
	struct event_subject *subjects; /* largest weight first */
	size_t subject_count;
};

/* Errors: NO_MEMORY. */
struct sym_error *event_origins_make(const struct selection *selection, struct event_origins *ret)
	__attribute__((warn_unused_result));
void event_origins_deinit(struct event_origins *origins);

/* The innermost function of a stack that does not belong to .NET; else the innermost managed one
 * that says where the thread is (frame_text.h), else the innermost of all. `frames` outermost
 * first. */
uint32_t event_origins_where(const struct frame_table *table, const uint32_t *frames, size_t count);

#endif
