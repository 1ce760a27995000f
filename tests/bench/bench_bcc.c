/* SPDX-License-Identifier: MIT */
/*
 * Compares libsym-bcc with libbcc through the same functions: making a cache of a process with a
 * perf map of a million lines, and a million look-ups in it. Each library works in children of its
 * own, in alternation, on the same map. The best round counts, in CPU time and in memory that the
 * child gained.
 */
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/bcc_calls.h"
#include "tests/bench/bench.h"

enum {
	ROUNDS = 3,
	LINES = 1000000,
	LOOKUPS = 1000000,
	PROFILE_ADDRESSES = 2000,
	STEP_BYTES = 96,
	SIZE_BYTES = 80,
};

static const uint64_t first_address = 0x200000000000;

/* The measurements of a child; negative: failed. */
struct times {
	double load_seconds;
	double lookup_ns; /* as in a profile: a few thousand addresses repeatedly */
	double spread_ns; /* every line equally often, so memory dominates; the first million */
	double again_ns;  /* the second million */
	double megabytes;
	double asked_megabytes; /* after these look-ups */
	uint64_t named;
};

static double resident_megabytes(void)
{
	unsigned long pages = 0, unused;
	FILE *file = fopen("/proc/self/statm", "re");

	if (!file || fscanf(file, "%lu %lu", &unused, &pages) != 2)
		pages = 0;
	if (file)
		fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

/* Writes a map like a runtime's for this process, and maps memory for its addresses. */
static bool write_map(const char *path, bool with_tiers)
{
	static const char *const returns[] = { "void", "instance void", "int32", "instance bool" };
	FILE *file;

	if (mmap((void *)first_address, (size_t)LINES * STEP_BYTES, PROT_READ | PROT_EXEC,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
		 0) == MAP_FAILED)
		return false;
	file = fopen(path, "we");
	for (uint64_t i = 0; file && i < LINES; i++) {
		fprintf(file, "%lx %x ", first_address + i * STEP_BYTES, SIZE_BYTES);
		fprintf(file, "%s [Shop.Orders] Shop.Orders.Type%lu::Method%lu(%s)%s\n",
			returns[i % 4], i / 12, i,
			i % 3 ? "int32" : "class [System.Runtime]System.Object",
			with_tiers ? "[OptimizedTier1]" : "");
	}
	return file && fclose(file) == 0;
}

/* Looks up addresses of `distinct` lines in random order. */
static double time_lookups(const struct bcc_calls *library, void *cache, uint64_t distinct,
			   uint64_t *named)
{
	const uint64_t stride = LINES / distinct;
	double begin = seconds();

	*named = 0;
	for (int i = 0; i < LOOKUPS; i++) {
		struct bcc_symbol symbol;

		*named += library->resolve(cache,
					   first_address +
						   noise() % distinct * stride * STEP_BYTES + 7,
					   &symbol) == 0;
	}
	return (seconds() - begin) * 1e9 / LOOKUPS;
}

static void measure(const char *path, bool with_tiers, struct times *ret)
{
	struct bcc_symbol symbol;
	struct bcc_calls library;
	char map_path[64];
	double begin, before;
	void *cache;

	snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", (int)getpid());
	if (!bcc_calls_open(&library, path) || !write_map(map_path, with_tiers)) {
		unlink(map_path);
		return;
	}
	before = resident_megabytes();
	begin = seconds();
	cache = library.cache_new(getpid(), NULL);
	library.resolve(cache, first_address, &symbol);
	ret->load_seconds = seconds() - begin;
	ret->megabytes = resident_megabytes() - before;
	ret->lookup_ns = time_lookups(&library, cache, PROFILE_ADDRESSES, &ret->named);
	ret->spread_ns = time_lookups(&library, cache, LINES, &ret->named);
	ret->again_ns = time_lookups(&library, cache, LINES, &ret->named);
	ret->asked_megabytes = resident_megabytes() - before;
	unlink(map_path);
}

static void measure_in_child(const char *path, bool with_tiers, struct times *best)
{
	struct times *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;

	*shared = (struct times){ .load_seconds = -1 };
	fflush(stdout);
	child = fork();
	if (child == 0) {
		measure(path, with_tiers, shared);
		_exit(0);
	}
	waitpid(child, NULL, 0);
	if (best->load_seconds < 0 || shared->load_seconds < best->load_seconds)
		best->load_seconds = shared->load_seconds;
	if (best->named == 0 || shared->lookup_ns < best->lookup_ns)
		best->lookup_ns = shared->lookup_ns;
	if (best->named == 0 || shared->spread_ns < best->spread_ns)
		best->spread_ns = shared->spread_ns;
	if (best->named == 0 || shared->again_ns < best->again_ns)
		best->again_ns = shared->again_ns;
	if (best->named == 0 || shared->megabytes < best->megabytes)
		best->megabytes = shared->megabytes;
	if (best->named == 0 || shared->asked_megabytes < best->asked_megabytes)
		best->asked_megabytes = shared->asked_megabytes;
	best->named = shared->named;
	munmap(shared, sizeof(*shared));
}

static void judge(const char *name, double ours, double peer, double times, const char *unit)
{
	figure(name, ours, peer, (struct bench_goal){ .most_ratio = 1 / times }, unit);
}

/* Next to this program's directory, where the build puts it. */
static bool find_ours(char *room, size_t room_bytes)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (length <= 0)
		return false;
	path[length] = '\0';
	*strrchr(path, '/') = '\0';
	*strrchr(path, '/') = '\0';
	return snprintf(room, room_bytes, "%s/libsym-bcc.so", path) < (int)room_bytes;
}

int main(void)
{
	struct times ours[2] = { { .load_seconds = -1 }, { .load_seconds = -1 } };
	struct times peer[2] = { { .load_seconds = -1 }, { .load_seconds = -1 } };
	char path[PATH_MAX];

	if (!find_ours(path, sizeof(path)))
		return 1;
	for (int round = 0; round < ROUNDS; round++)
		for (int tiers = 0; tiers < 2; tiers++) {
			measure_in_child(path, tiers, &ours[tiers]);
			measure_in_child(bcc_library, tiers, &peer[tiers]);
		}
	if (ours[0].named != LOOKUPS || ours[1].named != LOOKUPS)
		printf("bcc: only %lu and %lu of %d look-ups named\n", ours[0].named, ours[1].named,
		       LOOKUPS);
	print_floor("bcc_lookup_floor", (size_t)LINES / 5 * BENCH_LINE_BYTES);
	judge("bcc_lookup_1M", ours[0].lookup_ns, peer[0].lookup_ns, 20, "ns");
	judge("bcc_lookup_1M_tiers", ours[1].lookup_ns, peer[1].lookup_ns, 20, "ns");
	judge("bcc_lookup_1M_spread", ours[0].spread_ns, peer[0].spread_ns, 20, "ns");
	judge("bcc_lookup_1M_spread_tiers", ours[1].spread_ns, peer[1].spread_ns, 20, "ns");
	judge("bcc_lookup_1M_spread_again", ours[0].again_ns, peer[0].again_ns, 20, "ns");
	judge("bcc_lookup_1M_spread_again_tiers", ours[1].again_ns, peer[1].again_ns, 20, "ns");
	judge("bcc_load_1M", ours[0].load_seconds, peer[0].load_seconds, 10, "s");
	judge("bcc_load_1M_tiers", ours[1].load_seconds, peer[1].load_seconds, 10, "s");
	judge("bcc_memory_1M", ours[0].megabytes, peer[0].megabytes, 5, "MB");
	judge("bcc_memory_1M_tiers", ours[1].megabytes, peer[1].megabytes, 5, "MB");
	/* By then ours has read all names, unlike in a profile. */
	judge("bcc_memory_1M_all_asked", ours[0].asked_megabytes, peer[0].asked_megabytes, 1, "MB");
	return 0;
}
