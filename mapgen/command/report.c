/* SPDX-License-Identifier: MIT */
/* report: answers from a recording. Opens a profile, chooses what of it is shown, and writes it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/output_file.h"
#include "mapgen/cli/target.h"
#include "mapgen/debuginfo/symbolize_client.h"
#include "mapgen/profile/event_report.h"
#include "mapgen/profile/profile_open.h"
#include "mapgen/view/event_view.h"
#include "mapgen/view/flame_page.h"
#include "mapgen/view/view.h"

enum {
	USUAL_ROWS = 20,
};

DEFINE_GUARD(symbolize_client, struct symbolize_client *, symbolize_client_destroy)
DEFINE_GUARD(profile, struct profile *, profile_destroy)

static bool read_view(const struct options *options, enum view_kind *ret)
{
	*ret = VIEW_SUMMARY;
	if (!options->operand_count)
		return true;
	for (int i = 0; i < VIEW_KINDS; i++)
		if (options->operand_count == 1 &&
		    !strcmp(options->operands[0], view_kind_name((enum view_kind)i))) {
			*ret = (enum view_kind)i;
			return true;
		}
	message("'%s' is not a view: there are summary, cpu, off-cpu, threads, gc, alloc, "
		"exceptions, contention, waits, threadpool, jit, events, counters",
		options->operands[options->operand_count - 1]);
	return false;
}

static bool check(const struct options *options)
{
	if (!options->input) {
		message("report needs -i FILE; see dotnet-mapgen report --help");
		return false;
	}
	if (options->callers_of && options->callees_of) {
		message("--callers-of and --callees-of do not go together");
		return false;
	}
	if (options->to_seconds && options->to_seconds <= options->from_seconds) {
		message("--to is not after --from");
		return false;
	}
	if (options->symbolize_at && !symbolize_client_takes(options->symbolize_at)) {
		message("--symbolize-at: '%s' is not http://... or https://...",
			options->symbolize_at);
		return false;
	}
	return true;
}

static size_t terminal_width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
}

static struct view make_view(const struct options *options, const struct profile *profile,
			     enum view_kind kind)
{
	bool is_text = options->format == REPORT_TEXT;

	return (struct view){
		.profile = profile,
		.input = options->input,
		.kind = kind,
		.by = options->by ? (enum totals_by)(options->by - 1) : TOTALS_BY_FUNCTION,
		.has_by = options->by,
		.urls = options->urls,
		.event = view_find_event(profile, kind),
		.selection = { .thread = options->thread,
			       .callers_of = options->callers_of,
			       .callees_of = options->callees_of,
			       .shows_idle = options->idle },
		.top = options->top == UINT32_MAX ? 0
		       : options->top             ? options->top
		       : is_text                  ? USUAL_ROWS
						  : 0,
		.names = (enum frame_names)options->names,
		.width = options->output ? 0 : terminal_width(),
	};
}

static struct sym_error *write_flame(const struct view *view,
				     struct sym_error *(*write)(const struct flame_page *, FILE *),
				     FILE *to)
{
	const struct flame_tab tab = { .name = view->kind == VIEW_OFF_CPU ? "off-CPU"
					       : event_view_is_one(view->kind)
						       ? view_kind_name(view->kind)
						       : "CPU",
				       .view = *view };
	const struct flame_page page = { .tabs = &tab,
					 .tab_count = 1,
					 .made_by = "dotnet-mapgen report" };

	return view->event == UINT32_MAX ? NULL : write(&page, to);
}

static struct sym_error *write_view(const struct view *view, int format, FILE *to)
{
	switch ((enum report_format)format) {
	case REPORT_JSON:
		return json_view_write(view, to);
	case REPORT_CSV:
		return csv_view_write(view, to);
	case REPORT_FOLDED:
		return folded_view_write(view, to);
	case REPORT_SPEEDSCOPE:
		return speedscope_view_write(view, to);
	case REPORT_PPROF:
		return pprof_view_write(view, to);
	case REPORT_PERF_SCRIPT:
		return perf_script_view_write(view, to);
	case REPORT_HTML:
		return write_flame(view, flame_page_write, to);
	case REPORT_SVG:
		return write_flame(view, flame_svg_write, to);
	default:
		return text_view_write(view, to);
	}
}

struct writing {
	const struct view *view;
	int format;
};

static struct sym_error *write_file(const void *context, FILE *to)
{
	const struct writing *writing = context;

	return write_view(writing->view, writing->format, to);
}

/* A view that the input has nothing for. */
static bool is_missing(const struct view *view)
{
	if (event_view_is_one(view->kind))
		return !event_view_has_rows(view);
	/* A stream of events has no samples. */
	if (view->kind == VIEW_SUMMARY && view->profile->report && view->profile->report->events)
		return false;
	return view->event == UINT32_MAX && view->kind != VIEW_THREADS;
}

static bool needs_stacks(int format)
{
	return format != REPORT_TEXT && format != REPORT_CSV && format != REPORT_JSON;
}

/* Rows of these views are of all threads, and have no stack. */
static bool selects_in_vain(const struct options *options, enum view_kind kind)
{
	bool has_threads = kind != VIEW_GC && kind < VIEW_THREADPOOL;
	bool selects = options->thread || options->callers_of || options->callees_of;

	if (!selects || has_threads || options->by || needs_stacks(options->format))
		return false;
	message("--thread, --callers-of and --callees-of need --by, or a format with stacks, for "
		"the view %s",
		view_kind_name(kind));
	return true;
}

/* The exit code of a view that was written. */
static int end_report(const struct view *view, int format, const struct symbolize_client *client)
{
	const char *problem = client ? symbolize_client_problem(client) : NULL;

	if (needs_stacks(format) && view->event == UINT32_MAX && !is_missing(view)) {
		message("%s: the view %s has no stacks; --format=text, csv and json show it",
			view->input, view_kind_name(view->kind));
		return EXIT_PARTLY;
	}
	if (problem)
		message("native functions may lack names that the server should know: %s", problem);
	return problem || is_missing(view) ? EXIT_PARTLY : EXIT_DONE;
}

static int write_report(const struct options *options, const struct view *view,
			const struct symbolize_client *client)
{
	const struct writing writing = { view, options->format };
	struct sym_error *error;
	int status = 0;

	if (options->output) {
		status = output_file_write(options->output, write_file, &writing);
	} else {
		error = write_view(view, options->format, stdout);
		if (!message_error_of(options->input, error))
			return EXIT_FAILED;
	}
	return status ? status : end_report(view, options->format, client);
}

int report_run(const struct options *options)
{
	struct profile_open_opts opts = { .options = options,
					  .lines = options->by == TOTALS_BY_LINE + 1,
					  .keeps_samples = options->format == REPORT_PERF_SCRIPT,
					  .from_s = options->from_seconds,
					  .to_s = options->to_seconds,
					  .event_lines = options->event };
	struct symbolize_client *client GUARDED(symbolize_client) = NULL;
	struct profile *profile GUARDED(profile) = NULL;
	struct sym_error *error;
	enum view_kind kind;
	struct view view;

	if (!read_view(options, &kind) || !check(options) || selects_in_vain(options, kind))
		return EXIT_USAGE;
	opts.keeps_spans = kind == VIEW_CONTENTION;
	if (options->symbolize_at) {
		client = symbolize_client_create(options->symbolize_at, false);
		if (!client)
			return EXIT_FAILED;
		opts.symbolize = client;
	}
	error = profile_open(options->input, &opts, &profile);
	if (!message_error_of(options->input, error))
		return EXIT_FAILED;
	view = make_view(options, profile, kind);
	return write_report(options, &view, client);
}
