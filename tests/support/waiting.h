/* SPDX-License-Identifier: MIT */
/*
 * How unit tests wait: until something is seen, with a deadline. check-style allows sleeps here and
 * in the rows of tests/meta/sleeps.txt.
 *
 *     for (int turn = 0; !is_so() && wait_turn(turn); turn++)
 *             ;
 */
#ifndef TESTS_SUPPORT_WAITING_H
#define TESTS_SUPPORT_WAITING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static inline void wait_pause(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

/* One turn of a loop that waits; false after 20 s. */
static inline bool wait_turn(int turn)
{
	wait_pause();
	return turn < 20000;
}

static inline int64_t wait_clock_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* A file has the time of the last tick of this clock. What is written from here on has a later one.
 */
static inline void wait_for_file_tick(void)
{
	struct timespec first, now;

	clock_gettime(CLOCK_REALTIME_COARSE, &first);
	do {
		wait_pause();
		clock_gettime(CLOCK_REALTIME_COARSE, &now);
	} while (now.tv_sec == first.tv_sec && now.tv_nsec == first.tv_nsec);
}

/* Waits until the last change of a file is so old. */
static inline void wait_until_old(const char *path, int64_t age_ms)
{
	struct stat status;

	while (!stat(path, &status) &&
	       wait_clock_ms(CLOCK_REALTIME) < status.st_ctim.tv_sec * INT64_C(1000) +
						       status.st_ctim.tv_nsec / 1000000 + age_ms)
		wait_pause();
}

/* Waits until a process runs for so long. Start times have ticks of 10 ms, so a change in the first
 * 20 ms counts as earlier than the process. */
static inline void wait_for_age(pid_t pid, int64_t age_ms)
{
	unsigned long long start = 0;
	char text[1024] = "", *end;
	FILE *file;

	snprintf(text, sizeof(text), "/proc/%d/stat", (int)pid);
	file = fopen(text, "r");
	if (file && fgets(text, sizeof(text), file) && (end = strrchr(text, ')')))
		sscanf(end + 1,
		       "%*s %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
		       "%*d %llu",
		       &start);
	if (file)
		fclose(file);
	while (wait_clock_ms(CLOCK_BOOTTIME) < (int64_t)start * 10 + age_ms)
		wait_pause();
}

#endif
