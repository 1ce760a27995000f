/* SPDX-License-Identifier: MIT */
#include "mapgen/cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/terminal.h"
#include "mapgen/cli/monotonic.h"

enum {
	BAR_WIDTH = 30,
	NAME_WIDTH = 38,
	LINE_BYTES = 256
};

/* Drawing costs more than a small image, and the eye sees no more than this. */
static const double redraw_s = 0.04, line_redraw_s = 1;

static const char erase[] = "\r\033[K";

/* A stream that erases the line when asked. */
static bool is_on_terminal(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

void progress_begin(struct progress *progress, size_t total)
{
	*progress = (struct progress){ .shown = is_on_terminal(), .total = total };
}

static void progress_draw(struct progress *progress, size_t filled, const char *detail)
{
	char bar[BAR_WIDTH + 1], printable[NAME_WIDTH];
	size_t i, rest,
		length = terminal_clean(printable, progress->name,
					strnlen(progress->name, NAME_WIDTH), &rest);

	progress->last_drawn_s = monotonic_seconds();
	for (i = 0; i < BAR_WIDTH; i++)
		bar[i] = i < filled ? '#' : '.';
	bar[i] = '\0';
	/* Not through stderr, which removes control characters. */
	dprintf(STDERR_FILENO, "%s[%s] %zu/%zu %.*s%s", erase, bar, progress->done, progress->total,
		(int)length, printable, detail);
}

void progress_step(struct progress *progress, const char *name)
{
	size_t filled = progress->total ? progress->done * BAR_WIDTH / progress->total : 0;

	progress->done++;
	progress->name = name;
	if (progress->shown && monotonic_seconds() - progress->last_drawn_s >= redraw_s)
		progress_draw(progress, filled, "");
}

void progress_bytes(struct progress *progress, uint64_t bytes, uint64_t total_bytes)
{
	uint64_t filled = total_bytes ? BAR_WIDTH * (bytes >> 10) / (1 + (total_bytes >> 10)) : 0;
	char detail[64];

	if (!progress->shown || monotonic_seconds() - progress->last_drawn_s < redraw_s)
		return;
	if (total_bytes)
		snprintf(detail, sizeof(detail), "  %.1f of %.1f MB", (double)bytes / 1e6,
			 (double)total_bytes / 1e6);
	else if (bytes)
		snprintf(detail, sizeof(detail), "  %.1f MB", (double)bytes / 1e6);
	else
		snprintf(detail, sizeof(detail), "  asking");
	progress_draw(progress, filled < BAR_WIDTH ? (size_t)filled : BAR_WIDTH, detail);
}

void progress_line(struct progress *progress, const char *text)
{
	char printable[LINE_BYTES];
	size_t length, rest;

	if (!progress->shown || monotonic_seconds() - progress->last_drawn_s < line_redraw_s)
		return;
	length = terminal_clean(printable, text, strnlen(text, sizeof(printable)), &rest);
	progress->last_drawn_s = monotonic_seconds();
	dprintf(STDERR_FILENO, "%s%.*s", erase, (int)length, printable);
}

void progress_hide(struct progress *progress)
{
	if (progress->shown && progress->last_drawn_s)
		dprintf(STDERR_FILENO, "%s", erase);
	progress->last_drawn_s = 0;
}

void progress_end(struct progress *progress)
{
	progress_hide(progress);
	progress->shown = false;
}
