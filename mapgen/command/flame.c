/* SPDX-License-Identifier: MIT */
/*
 * The command flame: one picture of where time goes. Records processes to a temporary file, or
 * reads a recording, and writes one file that opens anywhere: a page, a picture, or folded text.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/error.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/output_file.h"
#include "mapgen/command/record.h"
#include "mapgen/events/event_choice.h"
#include "mapgen/profile/profile_open.h"
#include "mapgen/profile/stack_quality.h"
#include "mapgen/view/flame_page.h"
#include "mapgen/view/units.h"
#include "mapgen/view/waits.h"

enum {
	USUAL_SECONDS = 10,
	MOST_TABS = 10,
	TOP_FUNCTIONS = 3,
	NAME_LIMIT = 1 << 20,
};

DEFINE_GUARD(profile, struct profile *, profile_destroy)

struct form {
	const char *ending;
	struct sym_error *(*write)(const struct flame_page *page, FILE *to);
};

static struct sym_error *write_folded(const struct flame_page *page, FILE *to)
{
	return folded_view_write(&page->tabs[0].view, to);
}

static struct sym_error *write_speedscope(const struct flame_page *page, FILE *to)
{
	return speedscope_view_write(&page->tabs[0].view, to);
}

static struct sym_error *write_pprof(const struct flame_page *page, FILE *to)
{
	return pprof_view_write(&page->tabs[0].view, to);
}

static const struct form forms[] = {
	{ ".html", flame_page_write }, { ".svg", flame_svg_write },
	{ ".folded", write_folded },   { ".speedscope.json", write_speedscope },
	{ ".pb.gz", write_pprof },
};

static const struct form *form_of(const char *path)
{
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (path_ends_with(path, forms[i].ending))
			return &forms[i];
	message("%s: a name ends with its form: .html, .svg, .folded, .speedscope.json or .pb.gz",
		path);
	return NULL;
}

static enum view_kind wanted_view(const struct options *options)
{
	if (options->view >= FLAME_VIEW_GC)
		return (enum view_kind)(VIEW_GC + options->view - FLAME_VIEW_GC);
	return options->view == FLAME_VIEW_OFF_CPU ? VIEW_OFF_CPU : VIEW_CPU;
}

/* ---- the recording --------------------------------------------------------------------------- */

/* Returns the events that a view needs. Groups of events have the names of views. */
static const char *events_of(enum view_kind kind)
{
	if (kind < VIEW_GC)
		return NULL;
	return kind == VIEW_EVENTS ? EVENT_CHOICE_DEFAULT : view_kind_name(kind);
}

static int record_now(const struct options *options, struct profile **ret)
{
	struct options recording = *options;

	recording.for_seconds = options->for_seconds ?: USUAL_SECONDS;
	recording.off_cpu_us = wanted_view(options) == VIEW_OFF_CPU;
	recording.events = events_of(wanted_view(options));
	return record_profile(&recording, ret);
}

static int open_profile(const struct options *options, const char *path, struct profile **ret)
{
	const struct profile_open_opts opts = { .options = options };

	if (!path)
		return record_now(options, ret);
	return message_error_of(path, profile_open(path, &opts, ret)) ? EXIT_DONE : EXIT_FAILED;
}

/* ---- the output ------------------------------------------------------------------------------ */

/* NAME-YYYYMMDD-HHMMSS.html of a new recording, INPUT.html of an old one; in this directory. */
static char *default_output(const struct options *options, const struct profile *profile)
{
	const char *input = options->input;
	time_t now = time(NULL);
	struct tm when;
	char text[32], *path;
	size_t length;

	if (input && strcmp(input, "-") != 0) {
		input = path_file_name(input);
		length = strlen(input);
		if (path_ends_with(input, ".trace.zip"))
			length -= strlen(".trace.zip");
		return message_format("%.*s.html", (int)length, input);
	}
	localtime_r(&now, &when);
	strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &when);
	path = message_format("%s-%s.html", profile->title ? profile->title : "flame", text);
	for (char *c = path; *c; c++)
		if (*c == '/' || (unsigned char)*c < 0x20)
			*c = '_';
	return path;
}

struct writing {
	const struct flame_page *page;
	const struct form *form;
};

static struct sym_error *write_file(const void *context, FILE *to)
{
	const struct writing *writing = context;

	return writing->form->write(writing->page, to);
}

/* ---- what is said of it ---------------------------------------------------------------------- */

/* Events of the runtime come from its own stream. What the kernel has lost was not theirs. */
static bool is_of_events(const struct view *view)
{
	return view->kind >= VIEW_GC;
}

static void say_quality(const struct view *view)
{
	const struct profile_losses *losses = &view->profile->losses;
	const struct profile_event *event = &view->profile->events[view->event];
	uint64_t managed = 0, named = 0;
	struct stack_quality quality;
	char count[UNITS_ROOM], share[UNITS_ROOM];
	struct sym_error *error = stack_quality_measure(view->profile, view->event, &quality);

	if (error) {
		sym_error_destroy(error);
		return;
	}
	for (int kind = FRAME_KIND_JITTED; kind <= FRAME_KIND_PRECOMPILED; kind++) {
		managed += quality.frames[kind];
		named += quality.named_frames[kind];
	}
	printf("  %s %s", units_count(event->count, count),
	       event->kind == PROFILE_CPU       ? "CPU samples"
	       : event->kind == PROFILE_OFF_CPU ? "waits"
						: "samples");
	if (managed)
		printf(": %s of managed frames named", units_percent(named, managed, share));
	printf("%s %s of stacks whole", managed ? "," : ":",
	       units_percent(quality.whole_samples, quality.samples, share));
	if (is_of_events(view))
		putchar('\n');
	else if (losses->lost_records + losses->lost_samples)
		printf(", %s lost\n",
		       units_count(losses->lost_records + losses->lost_samples, count));
	else
		printf(", none lost\n");
	stack_quality_deinit(&quality);
}

/* Where time itself goes, by kind of the innermost frame. */
static void say_kinds(const struct view *view, const struct selection *selection)
{
	uint64_t kinds[FRAME_KINDS] = { 0 };
	char share[UNITS_ROOM];
	bool has_any = false;

	for (size_t i = 0; i < selection->count; i++) {
		const struct selected *item = &selection->items[i];

		if (item->frame_count)
			kinds[frame_table_at(view->profile->frames,
					     item->frames[item->frame_count - 1])
				      ->kind] += item->weight;
	}
	for (int kind = FRAME_KIND_JITTED; kind < FRAME_KINDS; kind++) {
		if (!kinds[kind])
			continue;
		printf("%s%s %s", has_any ? ", " : "  ",
		       units_percent(kinds[kind], selection->total_weight, share),
		       frame_kind_text((enum frame_kind)kind));
		has_any = true;
	}
	if (has_any)
		putchar('\n');
}

static void print_share(const struct view *view, uint32_t frame, uint64_t weight, uint64_t all,
			bool is_first)
{
	char share[UNITS_ROOM], *text AUTO_FREE = NULL;
	struct buf name;

	buf_init(&name, NAME_LIMIT);
	frame_text_short(&name, frame_table_at(view->profile->frames, frame));
	text = message_printable(buf_string(&name) ?: "");
	printf("%s%s %s", is_first ? "  top: " : ", ", text ? text : "",
	       units_percent(weight, all, share));
	buf_deinit(&name);
}

static struct sym_error *say_top(const struct view *view, const struct selection *selection)
{
	struct totals totals;
	struct sym_error *error = totals_make(selection, TOTALS_BY_FUNCTION, &totals);
	size_t count = 0;

	if (error)
		return error;
	for (; count < totals.count && count < TOP_FUNCTIONS && totals.rows[count].self_weight;
	     count++)
		print_share(view, totals.rows[count].frame, totals.rows[count].self_weight,
			    totals.total_weight, !count);
	if (count)
		putchar('\n');
	totals_deinit(&totals);
	return NULL;
}

/* Where threads wait: the innermost function of all waits is the kernel's. */
static struct sym_error *say_waits(const struct view *view, const struct selection *selection)
{
	struct waits waits;
	struct sym_error *error = waits_make(selection, &waits);
	size_t shown = 0;

	if (error)
		return error;
	for (size_t i = 0; i < waits.count && shown < TOP_FUNCTIONS; i++) {
		/* a wait without a stack */
		if (waits.rows[i].where == FRAME_NONE)
			continue;
		print_share(view, waits.rows[i].where, waits.rows[i].weight,
			    selection->total_weight, !shown++);
	}
	if (shown)
		putchar('\n');
	waits_deinit(&waits);
	return NULL;
}

static void say_result(const struct flame_page *page, const struct options *options,
		       const char *path)
{
	const struct view *view = &page->tabs[0].view;
	struct selection selection;
	struct sym_error *error =
		selection_make(view->profile, view->event, &view->selection, &selection);

	printf("Flame graph: %s\n", path);
	say_quality(view);
	if (error) {
		sym_error_destroy(error);
		return;
	}
	if (view->kind == VIEW_OFF_CPU) {
		error = say_waits(view, &selection);
	} else {
		/* The innermost frames of events are no code. */
		if (!is_of_events(view))
			say_kinds(view, &selection);
		error = say_top(view, &selection);
	}
	sym_error_destroy(error);
	selection_deinit(&selection);
	if (view->profile->pid && !options->input && wanted_view(options) != VIEW_OFF_CPU)
		printf("Next: dotnet-mapgen flame --view=off-cpu %d    what it waits for\n",
		       view->profile->pid);
}

/* ---- the command ----------------------------------------------------------------------------- */

static struct view make_view(const struct options *options, const struct profile *profile,
			     enum view_kind kind)
{
	return (struct view){ .profile = profile,
			      .input = options->input ? options->input : "-",
			      .kind = kind,
			      .event = view_find_event(profile, kind),
			      .selection = { .thread = options->thread,
					     .shows_idle = options->idle } };
}

/* The view that was asked for first, then the others that the profile has something for. */
static size_t make_tabs(const struct options *options, const struct profile *profile,
			const struct profile *older, struct flame_tab *tabs)
{
	static const struct {
		enum view_kind kind;
		const char *name;
	} kinds[MOST_TABS] = {
		{ VIEW_CPU, "CPU" },
		{ VIEW_OFF_CPU, "off-CPU" },
		{ VIEW_ALLOC, "allocations" },
		{ VIEW_EXCEPTIONS, "exceptions" },
		{ VIEW_CONTENTION, "locks" },
		{ VIEW_WAITS, "waits" },
		{ VIEW_GC, "GC" },
		{ VIEW_JIT, "JIT" },
		{ VIEW_THREADPOOL, "thread pool" },
		{ VIEW_EVENTS, "events" },
	};
	size_t count = 0;

	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < MOST_TABS; i++) {
			bool is_first = kinds[i].kind == wanted_view(options);
			struct flame_tab tab = { .name = kinds[i].name };

			if (is_first != !turn)
				continue;
			tab.view = make_view(options, profile, kinds[i].kind);
			if (older)
				tab.older = make_view(options, older, kinds[i].kind);
			if (tab.view.event != UINT32_MAX)
				tabs[count++] = tab;
		}
	}
	return count;
}

static int make_page(const struct options *options, const struct profile *profile,
		     const struct profile *older, const char *path)
{
	struct flame_tab tabs[MOST_TABS];
	size_t count = make_tabs(options, profile, older, tabs);
	const struct flame_page page = { .tabs = tabs,
					 .tab_count = count,
					 .made_by = "dotnet-mapgen flame",
					 .shows_all = options->shows_all };
	struct writing writing;
	int status;

	if (!count) {
		message("there are no samples: the processes did not use the CPU");
		return EXIT_PARTLY;
	}
	writing = (struct writing){ &page, form_of(path) };
	status = output_file_write(path, write_file, &writing);
	if (!status)
		say_result(&page, options, path);
	if (!status && tabs[0].view.kind != wanted_view(options)) {
		message("the input has nothing for the view that was asked for");
		status = EXIT_PARTLY;
	}
	return status;
}

int flame_run(const struct options *options)
{
	struct profile *profile GUARDED(profile) = NULL, *older GUARDED(profile) = NULL;
	char *path AUTO_FREE = NULL;
	int status;

	if (options->input && (options->pid || options->operand_count)) {
		message("flame takes a process or -i FILE, not both");
		return EXIT_USAGE;
	}
	if (!options->input && !options->pid && !options->operand_count) {
		message("flame needs a PID, the name of a process, or -i FILE; see dotnet-mapgen "
			"flame --help");
		return EXIT_USAGE;
	}
	if (options->output && !form_of(options->output))
		return EXIT_USAGE;
	if (options->diff) {
		status = open_profile(options, options->diff, &older);
		if (status)
			return status;
	}
	status = open_profile(options, options->input, &profile);
	if (status)
		return status;
	path = options->output ? strdup(options->output) : default_output(options, profile);
	if (!path)
		return EXIT_FAILED;
	return make_page(options, profile, older, path);
}
