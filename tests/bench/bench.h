/* SPDX-License-Identifier: MIT */
/*
 * Shared by the benchmarks: noise, CPU time, the line that a figure is printed as, and the floor,
 * which is the cost of a cache miss on this machine, measured in the same run, so that an
 * unreachable goal is visible. Goals in nanoseconds were set on another machine; ratios to the peer
 * apply on any ("there").
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

static uint64_t bench_noise_state = 88172645463325252u;

static inline uint64_t noise(void)
{
	bench_noise_state ^= bench_noise_state << 13;
	bench_noise_state ^= bench_noise_state >> 7;
	bench_noise_state ^= bench_noise_state << 17;
	return bench_noise_state;
}

/* CPU time, on which other load has little effect. */
static inline double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void least(double *least_seconds, double candidate)
{
	if (*least_seconds <= 0 || candidate < *least_seconds)
		*least_seconds = candidate;
}

/* The goals of a figure; 0: none. */
struct bench_goal {
	double most;       /* in the unit of the figure */
	double most_ratio; /* relative to the peer */
	double floor;      /* a physical limit of this machine; printed, not judged */
	/* The peer's figure on the machine for which `most` was set. Our figure is scaled by it,
	 * printed, and not judged. */
	double peer_there;
};

static inline void figure(const char *name, double ours, double peer, struct bench_goal goal,
			  const char *unit)
{
	bool ok = (goal.most_ratio <= 0 || ours <= goal.most_ratio * peer) &&
		  (goal.most <= 0 || ours <= goal.most);
	bool judged = goal.most_ratio <= 0 || peer > 0;

	printf("%s ours=%.2f%s ", name, ours, unit);
	if (peer > 0)
		printf("peer=%.2f%s ratio=%.4f faster=%.1fx ", peer, unit, ours / peer,
		       peer / ours);
	else
		printf("peer=none ratio=none ");
	if (goal.floor > 0)
		printf("floor=%.2f%s of_floor=%.2f ", goal.floor, unit, ours / goal.floor);
	if (goal.peer_there > 0 && peer > 0)
		printf("there=%.2f%s ", ours * goal.peer_there / peer, unit);
	if (goal.most > 0)
		printf("goal=%g%s ", goal.most, unit);
	if (goal.most_ratio > 0)
		printf("goal=%.3gx ", goal.most_ratio);
	puts(!judged ? "without a peer" : ok ? "ok" : "short");
	fflush(stdout);
}

/* libbcc's time for a look-up on the machine of the goals, in nanoseconds. */
#define BENCH_BCC_LOOK_UP 2200

/* ---- the floor ----------------------------------------------------------------------- */

enum {
	BENCH_LINE_BYTES = 64,
	BENCH_READS = 1000000
};

struct bench_floor {
	double after_ns;  /* a read whose address depends on the previous read */
	double beside_ns; /* independent reads */
};

static inline double bench_chase(const uint32_t *memory)
{
	double begin = seconds();
	uint32_t at = 0;

	for (int i = 0; i < BENCH_READS; i++)
		at = memory[(size_t)at * (BENCH_LINE_BYTES / sizeof(*memory))];
	/* Always true, but the compiler cannot know. */
	return at < UINT32_MAX ? seconds() - begin : 0;
}

static inline double bench_scatter(const uint32_t *memory, size_t lines)
{
	double begin = seconds();
	uint32_t sum = 0;

	for (int i = 0; i < BENCH_READS; i++)
		sum += memory[noise() % lines * (BENCH_LINE_BYTES / sizeof(*memory))];
	return sum ? seconds() - begin : 0;
}

/* Reads random lines in `size_bytes` of memory, of huge or ordinary pages. */
static inline struct bench_floor measure_floor(size_t size_bytes, bool huge)
{
	const size_t page = (size_t)2 << 20, words = BENCH_LINE_BYTES / sizeof(uint32_t);
	size_t lines = (size_t)(size_bytes + page - 1) / page * page / BENCH_LINE_BYTES;
	uint32_t *memory = aligned_alloc(page, lines * BENCH_LINE_BYTES);
	uint32_t *order = malloc(lines * sizeof(*order));
	struct bench_floor floor = { 0 };

	if (!memory || !order)
		abort();
	madvise(memory, lines * BENCH_LINE_BYTES, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	/* One cycle through all lines. */
	for (size_t i = 0; i < lines; i++)
		order[i] = (uint32_t)i;
	for (size_t i = lines - 1; i > 0; i--) {
		size_t other = noise() % i;
		uint32_t held = order[i];

		order[i] = order[other];
		order[other] = held;
	}
	for (size_t i = 0; i < lines; i++)
		memory[i * words] = order[i];
	for (int round = 0; round < 3; round++) {
		least(&floor.after_ns, bench_chase(memory) * 1e9 / BENCH_READS);
		least(&floor.beside_ns, bench_scatter(memory, lines) * 1e9 / BENCH_READS);
	}
	free(order);
	free(memory);
	return floor;
}

static inline struct bench_floor print_floor(const char *name, size_t size_bytes)
{
	struct bench_floor small = measure_floor(size_bytes, false);
	struct bench_floor huge = measure_floor(size_bytes, true);

	printf("%s a cache line of %zu MB at random: after another %.1fns (huge pages %.1fns), "
	       "beside others %.1fns (huge pages %.1fns)\n",
	       name, size_bytes >> 20, small.after_ns, huge.after_ns, small.beside_ns,
	       huge.beside_ns);
	fflush(stdout);
	return huge;
}

#endif
