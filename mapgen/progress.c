/* SPDX-License-Identifier: MIT */
#include "mapgen/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	BAR_WIDTH = 30,
	NAME_WIDTH = 38
};

/* Drawing costs more than a small image; nobody sees more than this. */
static const int64_t redraw_ms = 40;

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* One that erases a line when told to. */
static bool is_on_terminal(void)
{
	const char *terminal = getenv("TERM");

	return isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

void progress_begin(struct progress *progress, size_t total)
{
	*progress = (struct progress){ .shown = is_on_terminal(), .total = total };
}

static void draw(struct progress *progress, size_t filled, const char *name, const char *detail)
{
	char bar[BAR_WIDTH + 1], printable[NAME_WIDTH + 1];
	size_t i;

	progress->last_drawn_ms = now_ms();
	for (i = 0; i < BAR_WIDTH; i++)
		bar[i] = i < filled ? '#' : '.';
	bar[i] = '\0';
	for (i = 0; i < NAME_WIDTH && name[i]; i++)
		printable[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7f ? '?' : name[i];
	printable[i] = '\0';
	fprintf(stderr, "\r\033[K[%s] %zu/%zu %s%s", bar, progress->done, progress->total,
		printable, detail);
}

void progress_step(struct progress *progress, const char *name)
{
	size_t filled = progress->total ? progress->done * BAR_WIDTH / progress->total : 0;

	progress->done++;
	if (progress->shown && now_ms() - progress->last_drawn_ms >= redraw_ms)
		draw(progress, filled, name, "");
}

void progress_bytes(struct progress *progress, const char *name, uint64_t bytes,
		    uint64_t total_bytes)
{
	uint64_t filled = total_bytes ? BAR_WIDTH * (bytes >> 10) / (1 + (total_bytes >> 10)) : 0;
	char detail[64];

	if (!progress->shown || now_ms() - progress->last_drawn_ms < redraw_ms)
		return;
	if (total_bytes)
		snprintf(detail, sizeof(detail), "  %.1f of %.1f MB", (double)bytes / 1e6,
			 (double)total_bytes / 1e6);
	else if (bytes)
		snprintf(detail, sizeof(detail), "  %.1f MB", (double)bytes / 1e6);
	else
		snprintf(detail, sizeof(detail), "  asking");
	draw(progress, filled < BAR_WIDTH ? (size_t)filled : BAR_WIDTH, name, detail);
}

void progress_hide(struct progress *progress)
{
	if (progress->shown && progress->last_drawn_ms)
		fputs("\r\033[K", stderr);
	progress->last_drawn_ms = 0;
}

void progress_end(struct progress *progress)
{
	if (progress->shown && progress->last_drawn_ms)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}
