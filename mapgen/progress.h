/* SPDX-License-Identifier: MIT */
/*
 * A progress bar on standard error while that is a terminal, nothing otherwise.
 * Knows how many steps there are and what the present one is called.
 */
#ifndef MAPGEN_PROGRESS_H
#define MAPGEN_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct progress {
	bool shown;
	size_t total;
	size_t done;
	int64_t last_drawn_ms;
};

void progress_begin(struct progress *progress, size_t total);

/* Before each step; `name` is shown while it runs. */
void progress_step(struct progress *progress, const char *name);

/* While a step takes long: how much of it has come, 0 in `total_bytes` when that is not known. */
void progress_bytes(struct progress *progress, const char *name, uint64_t bytes,
		    uint64_t total_bytes);

/* Takes the bar away for a line that is printed; the next step brings it back. */
void progress_hide(struct progress *progress);

/* Takes the bar off the terminal. */
void progress_end(struct progress *progress);

#endif
