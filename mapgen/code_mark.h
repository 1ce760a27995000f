/* SPDX-License-Identifier: MIT */
/*
 * Tells whether a process has loaded or unloaded code since, or become another program: by a sum
 * over what it has mapped of files as executable, and when these were written. Jitted code, which
 * comes all the time, is not in it. A question costs a reading of /proc/PID/maps and a look at each
 * file, and is asked so seldom that it does not count.
 */
#ifndef MAPGEN_CODE_MARK_H
#define MAPGEN_CODE_MARK_H

#include <stdbool.h>
#include <stdint.h>

struct code_mark {
	uint64_t sum;  /* 0: could not be read */
	double next_s; /* when it is looked at again, of CLOCK_MONOTONIC */
};

/* As of now; to be set before one looks at the process. */
void code_mark_set(struct code_mark *mark, int32_t pid);

/* Looks if it is time to, and sets the mark. False also when the process is gone. */
bool code_mark_changed(struct code_mark *mark, int32_t pid);

/* Not before so many seconds from now, nor before it would be anyway. */
void code_mark_wait(struct code_mark *mark, double seconds);

#endif
