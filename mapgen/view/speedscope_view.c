/* SPDX-License-Identifier: MIT */
/*
 * https://www.speedscope.app/file-format-schema.json: frames, and a profile of the type "sampled",
 * in which each stack stands once with its weight. Process and thread are the outermost frames.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/view/view.h"

enum {
	NAME_LIMIT = 1 << 20,
};

struct writing {
	const struct view *view;
	const struct selection *selection;
	const uint32_t *groups;
	FILE *to;
	size_t first_process, first_thread; /* numbers of their frames */
	bool lacks_memory;
};

static void put_string(struct writing *writing, const char *text)
{
	json_t *value = json_output_text(text);
	char *json AUTO_FREE = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;

	writing->lacks_memory |= !json;
	fputs(json ? json : "\"\"", writing->to);
	json_decref(value);
}

static void put_frame(struct writing *writing, const char *name, const char *file,
		      const struct profile_frame *lines)
{
	fputs("{\"name\":", writing->to);
	put_string(writing, name);
	if (*file) {
		fputs(",\"file\":", writing->to);
		put_string(writing, file);
	}
	if (lines && lines->line)
		fprintf(writing->to, ",\"line\":%u,\"col\":%u", lines->line, lines->column);
	fputs("}", writing->to);
}

/* By line a frame is a line, else a function. */
static uint32_t number_of(const struct writing *writing, uint32_t frame)
{
	bool by_line = writing->view->by == TOTALS_BY_LINE;

	return by_line && frame_table_at(writing->view->profile->frames, frame)->line
		       ? frame
		       : writing->groups[frame];
}

static void put_thread_frame(struct writing *writing, const struct profile_thread *thread)
{
	char *name AUTO_FREE = message_format("%s (%d)", thread->name, thread->tid);

	put_frame(writing, name ? name : "", "", NULL);
}

static void put_frames(struct writing *writing)
{
	const struct profile *profile = writing->view->profile;
	const struct thread_table *threads = &profile->threads;
	size_t count = frame_table_count(profile->frames);
	bool by_line = writing->view->by == TOTALS_BY_LINE;
	struct buf text;

	buf_init(&text, NAME_LIMIT);
	for (size_t i = 0; i < count; i++) {
		const struct profile_frame *frame = frame_table_at(profile->frames, (uint32_t)i);
		const char *name = view_frame_text(writing->view, frame, &text);

		fputs(i ? ",\n" : "", writing->to);
		put_frame(writing, name ? name : "",
			  by_line && frame->line ? view_source_file(writing->view, frame)
						 : frame->image,
			  by_line ? frame : NULL);
	}
	buf_deinit(&text);
	writing->first_process = count;
	writing->first_thread = count + threads->process_count;
	for (size_t i = 0; i < threads->process_count; i++) {
		fputs(count + i ? ",\n" : "", writing->to);
		put_frame(writing, threads->processes[i].name, "", NULL);
	}
	for (size_t i = 0; i < threads->thread_count; i++) {
		fputs(",\n", writing->to);
		put_thread_frame(writing, &threads->threads[i]);
	}
}

static void put_samples(const struct writing *writing)
{
	const struct selection *selection = writing->selection;
	const struct thread_table *threads = &writing->view->profile->threads;

	for (size_t i = 0; i < selection->count; i++) {
		const struct selected *item = &selection->items[i];

		fprintf(writing->to, "%s[%zu,%zu", i ? ",\n" : "",
			writing->first_process + threads->threads[item->thread].process,
			writing->first_thread + item->thread);
		for (uint32_t k = 0; k < item->frame_count; k++)
			fprintf(writing->to, ",%u", number_of(writing, item->frames[k]));
		fputs("]", writing->to);
	}
}

static void put_weights(const struct writing *writing, bool has_unit)
{
	for (size_t i = 0; i < writing->selection->count; i++) {
		const struct selected *item = &writing->selection->items[i];

		fprintf(writing->to, "%s%" PRIu64, i ? "," : "",
			has_unit ? item->weight : item->count);
	}
}

static void put_all(struct writing *writing)
{
	const struct profile_event *event =
		&writing->view->profile->events[writing->selection->event];
	const char *title = writing->view->profile->title;
	bool has_unit = event->unit != PROFILE_UNIT_COUNT;
	FILE *to = writing->to;

	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
	      "\"exporter\":\"dotnet-mapgen\",\n\"name\":",
	      to);
	put_string(writing, title ? title : writing->view->input);
	fputs(",\n\"shared\":{\"frames\":[\n", to);
	put_frames(writing);
	fputs("]},\n\"profiles\":[{\"type\":\"sampled\",\"name\":", to);
	put_string(writing, event->name);
	fprintf(to, ",\"unit\":\"%s\",\"startValue\":0,\"endValue\":%" PRIu64 ",\n\"samples\":[",
		event->is_time ? "nanoseconds"
		: has_unit     ? "bytes"
			       : "none",
		has_unit ? writing->selection->total_weight : writing->selection->total_count);
	put_samples(writing);
	fputs("],\n\"weights\":[", to);
	put_weights(writing, has_unit);
	fputs("]}]}\n", to);
}

static struct sym_error *write_stacks(const struct view *view, const struct selection *selection,
				      const uint32_t *groups, FILE *to)
{
	struct writing writing = { view, selection, groups, to, 0, 0, false };

	put_all(&writing);
	return writing.lacks_memory ? &sym_error_no_memory : NULL;
}

struct sym_error *speedscope_view_write(const struct view *view, FILE *to)
{
	return view_write_stacks(view, write_stacks, to);
}
