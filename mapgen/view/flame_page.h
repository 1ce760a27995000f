/* SPDX-License-Identifier: MIT */
/*
 * Flame graphs as files that open anywhere: one HTML page with a tab for each view, or one SVG
 * picture. The page is mapgen/view/flame_page.html with the data in it; it loads nothing.
 */
#ifndef MAPGEN_VIEW_FLAME_PAGE_H
#define MAPGEN_VIEW_FLAME_PAGE_H

#include "mapgen/view/view.h"

struct flame_tab {
	const char *name;  /* "CPU" */
	struct view view;  /* with an event */
	struct view older; /* `profile` NULL: no difference */
};

struct flame_page {
	const struct flame_tab *tabs;
	size_t tab_count;    /* at least 1 */
	const char *made_by; /* the command; NULL: not said */
	bool shows_all;      /* small nodes too */
};

/* Errors: those of flame_tree_make(). */
struct sym_error *flame_page_write(const struct flame_page *page, FILE *to)
	__attribute__((warn_unused_result));
/* The first tab only. */
struct sym_error *flame_svg_write(const struct flame_page *page, FILE *to)
	__attribute__((warn_unused_result));

/* Whether a character of a name is put into a page or picture. */
bool flame_page_shows(uint32_t character);

/* The title of a view, without a newline; heap, NULL for want of memory. */
char *flame_page_title(const struct view *view);

#endif
