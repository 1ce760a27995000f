/* SPDX-License-Identifier: MIT */
/*
 * The command top: which functions use the CPU now. Each picture is of the last two seconds.
 *
 *   Store.Web (PID 4711)  CPU 188 %  GC 6 %  JIT 1 %  kernel 4 %  alloc 1.1 GB/s  exceptions 204/s
 *    TOTAL    SELF  FUNCTION
 *   38.1 %   0.1 %  lambda_method3 -> Store.TopByTag
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/base/utf8.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/monotonic.h"
#include "mapgen/cli/target.h"
#include "mapgen/command/record.h"
#include "mapgen/record/runtime_rates.h"
#include "mapgen/view/frame_text.h"
#include "mapgen/view/units.h"
#include "mapgen/view/view.h"

enum {
	PICTURES_OF_A_RECORDING = 100,
	BATCH_ROWS = 20,
	HEAD_ROWS = 3, /* of the picture, beside those of functions */
	NAME_COLUMN = 18,
	NAME_LIMIT = 1 << 20,
};

static const double picture_seconds = 2;

struct screen {
	bool is_terminal;     /* redraw */
	size_t rows, columns; /* columns 0: any number */
};

struct shares {
	uint64_t all, gc, jit, kernel;
	bool has_gc_threads;
};

struct showing {
	const struct options *options;
	uint32_t left;       /* pictures; 0: any number */
	uint32_t to_restart; /* pictures until the recording is begun again */
	bool was_shown, is_done, has_failed;
	struct runtime_rates *rates; /* NULL: there are none */
	double rates_since;          /* CLOCK_MONOTONIC */
};

static struct screen look_at_screen(const struct options *options)
{
	struct winsize size;
	struct screen screen = { .rows = options->top ? options->top : BATCH_ROWS };

	if (options->batch || !isatty(STDOUT_FILENO))
		return screen;
	screen.is_terminal = true;
	screen.columns = 80;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col || !size.ws_row)
		return screen;
	screen.columns = size.ws_col;
	if (!options->top)
		screen.rows = size.ws_row > HEAD_ROWS + 1 ? size.ws_row - HEAD_ROWS : 1;
	return screen;
}

/* ".NET Server GC", ".NET BGC": threads of the collector. */
static bool is_gc_thread(const struct profile *profile, uint32_t thread)
{
	const char *name = profile->threads.threads[thread].name;

	return !strncmp(name, ".NET", 4) && strstr(name, "GC");
}

static bool is_jit(const struct view *view, const struct selected *item)
{
	for (uint32_t i = 0; i < item->frame_count; i++)
		if (!strcmp(path_file_name(
				    frame_table_at(view->profile->frames, item->frames[i])->image),
			    "libclrjit.so"))
			return true;
	return false;
}

static struct shares count_shares(const struct view *view, const struct selection *selection)
{
	struct shares shares = { .all = selection->total_weight };

	for (size_t i = 0; i < selection->count; i++) {
		const struct selected *item = &selection->items[i];

		if (is_gc_thread(view->profile, item->thread)) {
			shares.gc += item->weight;
			shares.has_gc_threads = true;
		} else if (is_jit(view, item)) {
			shares.jit += item->weight;
		}
		if (item->frame_count &&
		    frame_table_at(view->profile->frames, item->frames[item->frame_count - 1])
				    ->kind == FRAME_KIND_KERNEL)
			shares.kernel += item->weight;
	}
	return shares;
}

/* Finds the function that a delegate compiled by ASP.NET calls most. FRAME_NONE if it calls none.
 */
static uint32_t find_callee(const struct selection *selection, const char *name)
{
	const struct frame_table *frames = selection->profile->frames;
	uint64_t *weights AUTO_FREE = calloc(frame_table_count(frames) + 1, sizeof(*weights));
	uint32_t best = FRAME_NONE;

	for (size_t i = 0; weights && i < selection->count; i++) {
		const struct selected *item = &selection->items[i];

		for (uint32_t j = 0; j + 1 < item->frame_count; j++) {
			uint32_t callee = item->frames[j + 1];

			if (strcmp(frame_table_at(frames, item->frames[j])->name, name) != 0)
				continue;
			weights[callee] += item->weight;
			if (best == FRAME_NONE || weights[callee] > weights[best])
				best = callee;
		}
	}
	return best;
}

/* A line of at most so many columns; 0: of any number. */
static void print_cut(const char *text, size_t columns)
{
	size_t size_bytes = columns ? (size_t)(utf8_skip(text, columns) - text) : strlen(text);

	printf("%.*s\n", (int)size_bytes, text);
}

static void print_name(const struct view *view, const struct selection *selection,
		       const struct screen *screen, uint32_t frame)
{
	const struct profile_frame *shown = frame_table_at(view->profile->frames, frame);
	uint32_t callee = FRAME_NONE;
	char *line AUTO_FREE = NULL;
	struct buf name;

	if (strstr(shown->name, "lambda_method"))
		callee = find_callee(selection, shown->name);
	buf_init(&name, NAME_LIMIT);
	frame_text_short(&name, shown);
	if (callee != FRAME_NONE) {
		buf_append_string(&name, " -> ");
		frame_text_short(&name, frame_table_at(view->profile->frames, callee));
	}
	line = message_printable(buf_string(&name) ?: "");
	print_cut(line ? line : "", screen->columns > NAME_COLUMN ? screen->columns - NAME_COLUMN
								  : !!screen->columns);
	buf_deinit(&name);
}

static void put_whose(const struct profile *profile, char *room, size_t room_bytes)
{
	char *title AUTO_FREE = message_printable(profile->title ? profile->title : "process");

	if (profile->pid)
		snprintf(room, room_bytes, "%s (PID %" PRId32 ")", title ? title : "",
			 profile->pid);
	else
		snprintf(room, room_bytes, "all processes");
}

/* "6 %", or "-": of the time in which threads were stopped for collections, where events say it,
 * else of the CPU. */
static void put_gc(const struct shares *shares, const struct runtime_amounts *amounts,
		   double seconds, char *room, size_t room_bytes)
{
	char text[UNITS_ROOM];

	if (amounts)
		units_percent(amounts->pause_ns, (uint64_t)(seconds * 1e9), text);
	else if (shares->has_gc_threads)
		units_percent(shares->gc, shares->all, text);
	snprintf(room, room_bytes, "%s", amounts || shares->has_gc_threads ? text : "-");
}

static void put_rates(const struct runtime_amounts *amounts, double seconds, char *room,
		      size_t room_bytes)
{
	char bytes[UNITS_ROOM];

	room[0] = '\0';
	if (amounts)
		snprintf(room, room_bytes, "alloc %s/s  exceptions %.0f/s  ",
			 units_bytes((uint64_t)((double)amounts->allocated_bytes / seconds), bytes),
			 (double)amounts->exceptions / seconds);
}

static void print_head(const struct view *view, const struct selection *selection,
		       const struct screen *screen, struct showing *showing)
{
	const struct profile *profile = view->profile;
	struct shares shares = count_shares(view, selection);
	double seconds = profile_seconds(profile);
	char gc[UNITS_ROOM], jit[UNITS_ROOM], kernel[UNITS_ROOM], rates[128], whose[256], text[512];
	double now = monotonic_seconds(), passed = now - showing->rates_since;
	struct runtime_amounts amounts = { 0 };

	showing->rates_since = now;
	if (showing->rates)
		amounts = runtime_rates_take(showing->rates);
	put_gc(&shares, showing->rates ? &amounts : NULL, passed, gc, sizeof(gc));
	put_rates(showing->rates ? &amounts : NULL, passed, rates, sizeof(rates));
	put_whose(profile, whose, sizeof(whose));
	snprintf(text, sizeof(text),
		 "%s  CPU %.0f %%  GC %s  JIT %s  kernel %s  %s"
		 "threads %zu",
		 whose, seconds > 0 ? (double)shares.all / (seconds * 1e7) : 0.0, gc,
		 units_percent(shares.jit, shares.all, jit),
		 units_percent(shares.kernel, shares.all, kernel), rates, selection->thread_count);
	print_cut(text, screen->columns);
	print_cut(" TOTAL     SELF  FUNCTION", screen->columns);
}

static struct sym_error *print_rows(const struct view *view, const struct selection *selection,
				    const struct screen *screen)
{
	char total[UNITS_ROOM], self[UNITS_ROOM];
	struct totals totals;
	struct sym_error *error = totals_make(selection, TOTALS_BY_FUNCTION, &totals);

	if (error)
		return error;
	for (size_t i = 0; i < totals.count && i < screen->rows; i++) {
		const struct total_row *row = &totals.rows[i];

		printf("%7s  %7s  ", units_percent(row->total_weight, totals.total_weight, total),
		       units_percent(row->self_weight, totals.total_weight, self));
		print_name(view, selection, screen, row->frame);
	}
	totals_deinit(&totals);
	return NULL;
}

/* Past the filter of standard output, which lets no control character through. */
static void clear_terminal(void)
{
	static const char sequence[] = "\033[H\033[J";

	fflush(stdout);
	if (write(STDOUT_FILENO, sequence, sizeof(sequence) - 1) < 0)
		return; /* a terminal that is gone: the next line ends the command */
}

static struct sym_error *print_picture(const struct profile *profile, const struct screen *screen,
				       struct showing *showing)
{
	struct view view = { .profile = profile,
			     .kind = VIEW_CPU,
			     .event = view_find_event(profile, VIEW_CPU) };
	struct selection selection;
	struct sym_error *error;
	char whose[256];

	if (screen->is_terminal)
		clear_terminal();
	if (view.event == UINT32_MAX) {
		put_whose(profile, whose, sizeof(whose));
		printf("%s  CPU 0 %%\n", whose);
		return NULL;
	}
	error = selection_make(profile, view.event, &view.selection, &selection);
	if (error)
		return error;
	print_head(&view, &selection, screen, showing);
	error = print_rows(&view, &selection, screen);
	selection_deinit(&selection);
	return error;
}

/* A process that has ended has no program, also while its parent has not waited for it. */
static bool has_ended(int32_t pid)
{
	char path[64], program[8];

	snprintf(path, sizeof(path), "/proc/%" PRId32 "/exe", pid);
	return pid && readlink(path, program, sizeof(program)) < 0 && errno == ENOENT;
}

static bool show(void *context, const struct profile *profile)
{
	struct showing *showing = context;
	struct screen screen = look_at_screen(showing->options);
	struct sym_error *error = print_picture(profile, &screen, showing);

	showing->was_shown = true;
	if (error)
		message_error(error);
	showing->has_failed = error || fflush(stdout);
	/* A signal, or the end of the process, cut it short. */
	showing->is_done = showing->has_failed || (showing->left && !--showing->left) ||
			   profile_seconds(profile) < picture_seconds * 0.9 ||
			   has_ended(showing->options->pid);
	return !showing->is_done && --showing->to_restart;
}

static void step(void *context)
{
	struct showing *showing = context;
	struct sym_error *error = showing->rates ? runtime_rates_step(showing->rates) : NULL;

	if (!error)
		return;
	sym_error_destroy(error); /* the process has ended, which the next picture shows */
	runtime_rates_close(STEAL(showing->rates));
}

/* A runtime that does not answer, and a process without one, have shares of the CPU only. */
static void open_rates(struct showing *showing)
{
	const struct options *options = showing->options;
	struct sym_error *error =
		options->pid ? runtime_rates_open(options->pid, options->budget, &showing->rates)
			     : NULL;

	if (error && sym_error_code(error) != SYM_ERROR_NOT_FOUND)
		message("no rates of allocations and exceptions: %s", sym_error_message(error));
	sym_error_destroy(error);
	showing->rates_since = monotonic_seconds();
}

/* A recording keeps all names that it has seen, so it is begun again from time to time. */
int top_run(const struct options *options)
{
	struct options recording = *options;
	struct showing showing = { .options = options, .left = options->number_of_pictures };
	const struct record_pictures pictures = { picture_seconds, show, step, &showing };
	int status;

	if ((options->pid || options->operand_count) && !options_have_one_pid(options, "top"))
		return EXIT_USAGE;
	recording.whole_system = !options->pid;
	open_rates(&showing);
	/* It is begun again after the last picture of one, not after a signal. */
	do {
		showing.to_restart = PICTURES_OF_A_RECORDING;
		status = record_pictures(&recording, &pictures);
	} while (!status && !showing.is_done && !showing.to_restart);
	runtime_rates_close(showing.rates);
	if (status && showing.was_shown && has_ended(options->pid))
		return EXIT_DONE;
	return showing.has_failed ? EXIT_FAILED : status;
}
