/* SPDX-License-Identifier: MIT */
/*
 * Views of the runtime's events: collections, types, exceptions, locks, waits, the thread pool,
 * methods, events and counters. The rows are flat JSON objects, made once; text and CSV are written
 * from them.
 */
#ifndef MAPGEN_VIEW_EVENT_VIEW_H
#define MAPGEN_VIEW_EVENT_VIEW_H

#include <jansson.h>

#include "mapgen/view/view.h"

bool event_view_is_one(enum view_kind kind);

/* Are its rows those of event_view_make()? With --by they are functions, threads, ... as of
 * samples. */
bool event_view_has_own_rows(const struct view *view);

/* Writes which events are missing, and why. */
void event_view_write_losses(const struct view *view, FILE *to);

/* Has the profile anything for it? */
bool event_view_has_rows(const struct view *view);

/* *summary_ret: an object of what is said of all rows. Errors: those of selection_make(). */
struct sym_error *event_view_make(const struct view *view, json_t **summary_ret, json_t **rows_ret)
	__attribute__((warn_unused_result));

/* The name of the rows in JSON: "collections", "types", ... */
const char *event_view_rows_name(enum view_kind kind);

struct sym_error *event_view_write_text(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));
/* Writes the line about all rows, and how to see them. */
struct sym_error *event_view_write_headline(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));
struct sym_error *event_view_write_json(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));
struct sym_error *event_view_write_csv(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));

#endif
