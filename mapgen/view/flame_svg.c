/* SPDX-License-Identifier: MIT */
/*
 * A flame graph as one SVG picture without scripts: for mails, wikis and issue trackers. Callers
 * are above, each box has its full text as a tooltip.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/utf8.h"
#include "libsym/error.h"
#include "mapgen/view/flame_page.h"
#include "mapgen/view/flame_tree.h"
#include "mapgen/view/frame_text.h"
#include "mapgen/view/units.h"

enum {
	WIDTH = 1200,
	ROW = 17,
	HEAD = 40,
	NAME_LIMIT = 1 << 20,
	SHOWN_NAME_BYTES = 1000,
	LETTER_TENTHS = 66, /* of a pixel: how wide a letter is */
};

static const double narrowest = 0.3;

struct drawing {
	const struct frame_table *frames;
	const struct flame_tree *tree;
	double *next; /* by depth: where the next node begins */
	struct buf name;
	FILE *to;
};

/* `columns`: characters at most; 0: SHOWN_NAME_BYTES. */
static void put_xml_text(const char *text, size_t columns, FILE *to)
{
	size_t left = strnlen(text, SHOWN_NAME_BYTES), count = 0;
	uint32_t character;

	while (left) {
		size_t length = utf8_read(text, left, &character);

		if (length == UTF8_NOT_WHOLE)
			break;
		if (columns && ++count == columns && length < left) {
			fputs("\xe2\x80\xa6", to);
			break;
		}
		/* XML has neither U+FFFE nor U+FFFF. */
		if (!length || !flame_page_shows(character) || (character & ~1u) == 0xfffe)
			fputc('?', to);
		else if (character < 0x80 && strchr("<>&\"'", (int)character))
			fprintf(to, "&#%" PRIu32 ";", character);
		else
			fwrite(text, 1, length, to);
		length = length ? length : 1;
		text += length;
		left -= length;
	}
}

static const char *color_of(const struct profile_frame *frame)
{
	switch (frame->kind) {
	case FRAME_KIND_JITTED:
		return "#f2a15e";
	case FRAME_KIND_PRECOMPILED:
		return "#9ccb7c";
	case FRAME_KIND_RUNTIME:
		return "#e6d36a";
	case FRAME_KIND_NATIVE:
		return "#8fb8e8";
	case FRAME_KIND_KERNEL:
		return "#c3a5dd";
	default:
		return "#c9c9c9";
	}
}

static void draw_node(struct drawing *drawing, const struct flame_node *node, double x,
		      double width)
{
	const struct profile_frame *frame = frame_table_at(drawing->frames, node->frame);
	uint32_t y = HEAD + node->depth * ROW;
	size_t letters = (size_t)(width * 10 / LETTER_TENTHS);
	char weight[UNITS_ROOM], share[UNITS_ROOM];

	buf_clear(&drawing->name);
	frame_text_short(&drawing->name, frame);
	fprintf(drawing->to, "<g><title>");
	put_xml_text(frame->name, 0, drawing->to);
	fprintf(drawing->to,
		" (%s, %s)</title><rect x=\"%.2f\" y=\"%" PRIu32
		"\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>",
		drawing->tree->is_time    ? units_time(node->total, weight)
		: drawing->tree->is_bytes ? units_bytes(node->total, weight)
					  : units_count(node->total, weight),
		units_percent(node->total, drawing->tree->nodes[0].total, share), x, y,
		width > 2 ? width - 0.5 : width, ROW - 1, color_of(frame));
	if (letters > 2) {
		fprintf(drawing->to, "<text x=\"%.2f\" y=\"%" PRIu32 "\">", x + 3, y + 12);
		put_xml_text(buf_string(&drawing->name) ?: "", letters, drawing->to);
		fputs("</text>", drawing->to);
	}
	fputs("</g>\n", drawing->to);
}

static void draw_nodes(struct drawing *drawing)
{
	const struct flame_tree *tree = drawing->tree;
	double scale = tree->nodes[0].total ? (double)WIDTH / (double)tree->nodes[0].total : 0;

	for (size_t i = 0; i < tree->count; i++) {
		const struct flame_node *node = &tree->nodes[i];
		double x = drawing->next[node->depth], width = (double)node->total * scale;

		drawing->next[node->depth] += width;
		drawing->next[node->depth + 1] = x;
		if (width >= narrowest)
			draw_node(drawing, node, x, width);
	}
}

static struct sym_error *draw(const struct flame_tree *tree, const struct frame_table *frames,
			      const char *title, FILE *to)
{
	double *next AUTO_FREE = calloc((size_t)tree->deepest + 3, sizeof(*next));
	struct drawing drawing = { .frames = frames, .tree = tree, .next = next, .to = to };
	uint32_t height = HEAD + (tree->deepest + 1) * ROW + 10;

	if (!next)
		return &sym_error_no_memory;
	buf_init(&drawing.name, NAME_LIMIT);
	fprintf(to,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "
		"xmlns=\"http://www.w3.org/2000/svg\" "
		"width=\"%d\" height=\"%" PRIu32 "\" viewBox=\"0 0 %d %" PRIu32 "\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n"
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
		"<text x=\"6\" y=\"24\" font-size=\"15\">",
		WIDTH, height, WIDTH, height);
	put_xml_text(title, 0, to);
	fputs("</text>\n", to);
	draw_nodes(&drawing);
	fputs("</svg>\n", to);
	buf_deinit(&drawing.name);
	return NULL;
}

struct sym_error *flame_svg_write(const struct flame_page *page, FILE *to)
{
	const struct flame_tab *tab = &page->tabs[0];
	char *title AUTO_FREE = flame_page_title(&tab->view);
	struct flame_tree tree = { 0 };
	struct frame_table *frames;
	struct sym_error *error;

	if (!title)
		return &sym_error_no_memory;
	error = frame_table_create(&frames);
	if (error)
		return error;
	error = flame_tree_make(frames, &tab->view, NULL, !page->shows_all, &tree);
	if (!error)
		error = draw(&tree, frames, title, to);
	flame_tree_deinit(&tree);
	frame_table_destroy(frames);
	return error;
}
