/* SPDX-License-Identifier: MIT */
/* Parts of the views for people: text_view.c puts them together. */
#ifndef MAPGEN_VIEW_TEXT_PARTS_H
#define MAPGEN_VIEW_TEXT_PARTS_H

#include "mapgen/view/view.h"

/* A text and the blanks up to the end of its column. */
void text_parts_put_padded(const char *text, size_t width, FILE *to);

/* A name in a column; where it is too long and a terminal is narrow, its middle is left out. */
void text_parts_put_name(const struct view *view, const char *name, size_t width, FILE *to);

/* That so many rows are not shown; nothing for 0. */
void text_parts_put_left_out(size_t count, const char *what, FILE *to);

/* ", 10.0 s"; nothing when times are not known. */
void text_parts_put_seconds(const struct profile *profile, FILE *to);

/* "Store.Web (PID 4711, .NET 10.0.12), 10.0 s"; or how many processes there are. */
void text_parts_put_whose(const struct profile *profile, FILE *to);

/* Writes the losses that concern any view; a line for each cause. */
void text_parts_put_losses(const struct profile *profile, FILE *to);

/* Writes the title: the processes, the time and the number of samples. */
void text_parts_write_title(const struct view *view, const struct selection *selection, FILE *to);

/* Writes all losses; a line for each cause. */
void text_parts_write_losses(const struct view *view, const struct selection *selection, FILE *to);

/* That the profile has nothing for the view, and which command records it. */
void text_parts_say_missing(const struct view *view, FILE *to);

/* Useful commands. */
void text_parts_write_next(const struct view *view, FILE *to);

struct sym_error *text_parts_write_tree(const struct view *view, const struct selection *selection,
					FILE *to) __attribute__((warn_unused_result));
struct sym_error *text_parts_write_threads(const struct view *view, FILE *to)
	__attribute__((warn_unused_result));

#endif
