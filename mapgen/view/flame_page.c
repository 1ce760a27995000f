/* SPDX-License-Identifier: MIT */
/*
 * The page: the file mapgen/view/flame_page.html, which the compiler puts into the program, with
 * JSON in the place of @DATA@:
 *
 *   { title, subtitle, notes: [...], isDiff,
 *     frames: [[short name, full name, image, kind, tier], ...],
 *     views: [{ title, unit, nodes: [depth, frame, self (, old self), ...] }, ...] }
 *
 * Nodes are in preorder (flame_tree.h). Names are foreign: they are escaped so that no text ends
 * the script element, and the page sets them as text only.
 */
#include "mapgen/view/flame_page.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/terminal.h"
#include "libsym/base/utf8.h"
#include "libsym/error.h"
#include "mapgen/profile/event_report.h"
#include "mapgen/view/flame_tree.h"
#include "mapgen/view/frame_text.h"
#include "mapgen/view/text_parts.h"

enum {
	NAME_LIMIT = 1 << 20,
	SHOWN_NAME_BYTES = 1000, /* what a reader can use of a name */
};

/* The page, by the assembler, from the source tree. */
__asm__(".pushsection .rodata\n"
	"flame_page_begin:\n"
	".incbin \"mapgen/view/flame_page.html\"\n"
	"flame_page_end:\n"
	".byte 0\n"
	".popsection\n");

/* Hidden, so that no entry of the GOT stands between: for local symbols of one section the linker
 * for ARM64 makes one entry. */
extern __attribute__((visibility("hidden"))) const char flame_page_begin[], flame_page_end[];

/* ---- JSON ------------------------------------------------------------------------------------ */

/* Leaves out characters that end a line, in JavaScript too, and those that a terminal obeys. */
bool flame_page_shows(uint32_t character)
{
	return character >= 0x20 && character != 0x2028 && character != 0x2029 &&
	       !terminal_obeys(character);
}

/* A JSON string in a script element: no markup, no control character, no broken UTF-8. */
static void put_json_text(const char *text, FILE *to)
{
	size_t left = strnlen(text, SHOWN_NAME_BYTES);
	bool is_cut = text[left];
	uint32_t character;

	fputc('"', to);
	while (left) {
		size_t length = utf8_read(text, left, &character);

		if (length == UTF8_NOT_WHOLE)
			break;
		if (!length || !flame_page_shows(character)) {
			fputs("\\ufffd", to);
			length = length ? length : 1;
		} else if (character < 0x80 && strchr("\"\\<>&", (int)character)) {
			fprintf(to, "\\u%04x", character);
		} else {
			fwrite(text, 1, length, to);
		}
		text += length;
		left -= length;
	}
	fputs(is_cut ? "\\u2026\"" : "\"", to);
}

/* Numbers of KINDS in the page. */
static int kind_number(const struct profile_frame *frame)
{
	switch (frame->kind) {
	case FRAME_KIND_JITTED:
		return !strcmp(frame->tier, "QuickJitted") || !strcmp(frame->tier, "MinOptJitted");
	case FRAME_KIND_PRECOMPILED:
		return 2;
	case FRAME_KIND_RUNTIME:
		return 3;
	case FRAME_KIND_NATIVE:
		return 4;
	case FRAME_KIND_KERNEL:
		return 5;
	case FRAME_KIND_EVENT:
		return 7;
	default:
		return 6;
	}
}

static struct sym_error *put_frames(const struct frame_table *frames, FILE *to)
{
	size_t count = frame_table_count(frames);
	struct sym_error *error = NULL;
	struct buf name;

	buf_init(&name, NAME_LIMIT);
	fputs("\"frames\":[", to);
	for (size_t i = 0; !error && i < count; i++) {
		const struct profile_frame *frame = frame_table_at(frames, (uint32_t)i);
		const char *tier = frame->kind == FRAME_KIND_JITTED ? frame_text_kind(frame) : "";

		buf_clear(&name);
		frame_text_short(&name, frame);
		fputs(i ? ",\n[" : "\n[", to);
		put_json_text(buf_string(&name) ?: "", to);
		fputc(',', to);
		put_json_text(frame->name, to);
		fputc(',', to);
		put_json_text(frame->image, to);
		fprintf(to, ",%d,", kind_number(frame));
		put_json_text(tier, to);
		buf_clear(&name);
		frame_text_place(&name, frame);
		fputc(',', to);
		put_json_text(buf_string(&name) ?: "", to);
		fputc(']', to);
		if (name.failure == BUF_NO_MEMORY)
			error = &sym_error_no_memory;
	}
	fputs("]", to);
	buf_deinit(&name);
	return error;
}

static void put_tab(const struct flame_tab *tab, const struct flame_tree *tree, bool is_diff,
		    FILE *to)
{
	const struct profile_event *event = &tab->view.profile->events[tab->view.event];

	fputs("{\"title\":", to);
	put_json_text(tab->name, to);
	fprintf(to, ",\"unit\":\"%s\",\"nodes\":[",
		tree->is_time                       ? "ns"
		: event->unit == PROFILE_UNIT_BYTES ? "bytes"
		: event->kind == PROFILE_CPU        ? "samples"
						    : "events");
	for (size_t i = 0; i < tree->count; i++) {
		const struct flame_node *node = &tree->nodes[i];

		fprintf(to, "%s%" PRIu32 ",%" PRIu32 ",%" PRIu64, i ? "," : "", node->depth,
			node->frame, node->self);
		if (is_diff)
			fprintf(to, ",%" PRIu64, node->old_self);
	}
	fputs("]}", to);
}

static struct sym_error *put_tabs(const struct flame_page *page, struct frame_table *frames,
				  bool is_diff, FILE *to)
{
	struct sym_error *error = NULL;

	fputs("\"views\":[", to);
	for (size_t i = 0; !error && i < page->tab_count; i++) {
		const struct flame_tab *tab = &page->tabs[i];
		struct flame_tree tree = { 0 };

		error = flame_tree_make(frames, &tab->view, tab->older.profile ? &tab->older : NULL,
					!page->shows_all, &tree);
		if (error)
			break;
		fputs(i ? ",\n" : "\n", to);
		put_tab(tab, &tree, is_diff, to);
		flame_tree_deinit(&tree);
	}
	fputs("],\n", to);
	return error;
}

/* ---- the page -------------------------------------------------------------------------------- */

static char *first_line(const struct view *view, const struct selection *selection)
{
	char *text = NULL;
	size_t size_bytes;
	FILE *to = open_memstream(&text, &size_bytes);

	if (!to)
		return NULL;
	text_parts_write_title(view, selection, to);
	if (fclose(to)) {
		free(text);
		return NULL;
	}
	text[strcspn(text, "\n")] = '\0';
	return text;
}

char *flame_page_title(const struct view *view)
{
	struct selection selection;
	struct sym_error *error =
		selection_make(view->profile, view->event, &view->selection, &selection);
	char *title;

	if (error) {
		sym_error_destroy(error);
		return NULL;
	}
	title = first_line(view, &selection);
	selection_deinit(&selection);
	return title;
}

/* Writes a line for each loss, and the command that made the page. */
static struct sym_error *put_notes(const struct flame_page *page, FILE *to)
{
	const struct view *view = &page->tabs[0].view;
	struct selection selection;
	struct sym_error *error =
		selection_make(view->profile, view->event, &view->selection, &selection);
	char *text AUTO_FREE = NULL, *line, *rest;
	size_t size_bytes;
	bool has_any = false;
	FILE *notes;

	if (error)
		return error;
	notes = open_memstream(&text, &size_bytes);
	if (notes) {
		text_parts_write_losses(view, &selection, notes);
		if (page->made_by)
			fprintf(notes, "%s\n", page->made_by);
		fclose(notes);
	}
	selection_deinit(&selection);
	if (!text)
		return &sym_error_no_memory;
	fputs("\"notes\":[", to);
	for (rest = text; (line = strsep(&rest, "\n"));) {
		if (!*line)
			continue;
		if (has_any)
			fputc(',', to);
		has_any = true;
		put_json_text(line, to);
	}
	fputs("],\n", to);
	return NULL;
}

/* The collections, for the picture of them: drawTimeline() in the page. */
static void put_collections(const struct profile *profile, FILE *to)
{
	const struct gc_log *log = profile->report ? &profile->report->gc : NULL;
	bool has_any = false;

	if (!log || !log->count)
		return;
	fprintf(to, "\"gc\":{\"seconds\":%.3f,\"collections\":[", profile_seconds(profile));
	for (size_t i = 0; i < log->count; i++) {
		const struct gc_collection *collection = &log->items[i];
		uint64_t begin_ns = profile->begin_ns;

		if (collection->start_ns < begin_ns || collection->start_ns > profile->end_ns)
			continue;
		fprintf(to, "%s[%.6f,%.6f,%" PRIu32 ",%d,%" PRId64 "]", has_any ? "," : "",
			(double)(collection->start_ns - begin_ns) / 1e9,
			(double)collection->pause_ns / 1e6, collection->generation,
			collection->kind == GC_BACKGROUND,
			collection->has_after ? (int64_t)collection->after_bytes : -1);
		has_any = true;
	}
	fputs("]},\n", to);
}

static struct sym_error *put_data(const struct flame_page *page, FILE *to)
{
	char *title AUTO_FREE = flame_page_title(&page->tabs[0].view), *subtitle;
	bool is_diff = page->tabs[0].older.profile;
	struct frame_table *frames;
	struct sym_error *error;

	if (!title)
		return &sym_error_no_memory;
	error = frame_table_create(&frames);
	if (error)
		return error;
	subtitle = strstr(title, ": ");
	if (subtitle) {
		*subtitle = '\0';
		subtitle += 2;
	}
	fputs("{\"title\":", to);
	put_json_text(title, to);
	fputs(",\"subtitle\":", to);
	put_json_text(subtitle ?: "", to);
	fprintf(to, ",\"isDiff\":%s,\n", is_diff ? "true" : "false");
	error = put_notes(page, to);
	put_collections(page->tabs[0].view.profile, to);
	if (!error)
		error = put_tabs(page, frames, is_diff, to);
	if (!error)
		error = put_frames(frames, to);
	fputs("}\n", to);
	frame_table_destroy(frames);
	return error;
}

struct sym_error *flame_page_write(const struct flame_page *page, FILE *to)
{
	static const char mark[] = "@DATA@";
	size_t size_bytes = (size_t)(flame_page_end - flame_page_begin);
	const char *place = memmem(flame_page_begin, size_bytes, mark, sizeof(mark) - 1);
	const char *after = place + sizeof(mark) - 1;
	struct sym_error *error;

	fwrite(flame_page_begin, 1, (size_t)(place - flame_page_begin), to);
	error = put_data(page, to);
	if (!error)
		fwrite(after, 1, (size_t)(flame_page_end - after), to);
	return error;
}
