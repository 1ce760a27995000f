/* SPDX-License-Identifier: MIT */
/* CLOCK_MONOTONIC in seconds. */
#ifndef MAPGEN_CLI_MONOTONIC_H
#define MAPGEN_CLI_MONOTONIC_H

#include <time.h>

static inline double monotonic_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
