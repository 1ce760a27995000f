/* SPDX-License-Identifier: MIT */
/* Time for deadlines: milliseconds of a clock that cannot be set. Cheap enough for every request.
 */
#ifndef SYMSRV_UTIL_CLOCK_H
#define SYMSRV_UTIL_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Exact to a tick of the kernel (4 ms). */
static inline int64_t clock_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline int64_t clock_now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

#endif
