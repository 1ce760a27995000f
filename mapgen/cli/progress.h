/* SPDX-License-Identifier: MIT */
/*
 * A progress bar on standard error when that is a terminal. Knows the number of steps and the name
 * of the present one.
 */
#ifndef MAPGEN_CLI_PROGRESS_H
#define MAPGEN_CLI_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	bool shown;
	size_t total;
	size_t done;
	const char *name; /* of the step; borrowed */
	double last_drawn_s;
};

void progress_begin(struct progress *progress, size_t total);

/* Before each step; `name` is shown while it runs, and must live until the next one. */
void progress_step(struct progress *progress, const char *name);

/* During a long step: how much has arrived; `total_bytes` is 0 when unknown. */
void progress_bytes(struct progress *progress, uint64_t bytes, uint64_t total_bytes);

/* A line in place of the bar, drawn again each second. */
void progress_line(struct progress *progress, const char *text);

/* Hides the bar while a line is printed; the next step shows it again. */
void progress_hide(struct progress *progress);

/* Removes the bar from the terminal. */
void progress_end(struct progress *progress);

#endif
