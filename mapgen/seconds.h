/* SPDX-License-Identifier: MIT */
/* A time to reckon with: of CLOCK_MONOTONIC, in seconds. */
#ifndef MAPGEN_SECONDS_H
#define MAPGEN_SECONDS_H

#include <time.h>

static inline double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
