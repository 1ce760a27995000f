/* SPDX-License-Identifier: MIT */
/*
 * A perf map with a misbehaving writer, while four threads resolve and one refreshes: lines arrive
 * in pieces, the map is truncated, rewritten, replaced, is a FIFO for some time, and has a line of
 * 1 GiB. No answer may have the name of another address, and memory must stay bounded. A plain
 * program, so that ThreadSanitizer can watch it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/races/race.h"

enum {
	SLOTS = 4096,
	SLOT_BYTES = 64,
	RESOLVERS = 4,
	STEPS = 150,
	MOST_STEPS = 20000,
	LINES = 50,
	/* more text than is kept in memory: later names stay in the file */
	MANY_LINES = 110000
};

static const size_t most_bytes = (size_t)1536 << 20;

static struct {
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	uint64_t base;
	char path[64], other[64];
	_Atomic(bool) done;
	_Atomic(uint64_t) named, wrong, lost, refreshed, reread;
	_Atomic(uint64_t) checking_since[RESOLVERS]; /* how often it had been read again */
} world;

/* ---- the writer ---------------------------------------------------------------------------- */

/* Writes in pieces, so that a reader meets every kind of incomplete line. */
static void write_torn(int fd, const char *text, size_t bytes, uint32_t *state)
{
	while (bytes) {
		size_t piece = 1 + noise(state) % 200;
		ssize_t put = write(fd, text, piece < bytes ? piece : bytes);

		if (put < 0)
			abort();
		text += put;
		bytes -= (size_t)put;
		if (noise(state) % 4 == 0)
			sched_yield();
	}
}

static void write_lines(int fd, uint32_t *state)
{
	char text[LINES * 128];
	size_t used = 0;

	for (int i = 0; i < LINES; i++) {
		uint32_t slot = noise(state) % SLOTS, more = noise(state) % 3;

		if (more == 2 && noise(state) % 8 == 0)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "no line\n");
		used += (size_t)snprintf(text + used, sizeof(text) - used,
					 "%" PRIx64 " %x slot %u of %u[OptimizedTier1]\n",
					 world.base + (uint64_t)slot * SLOT_BYTES,
					 (more + 1) * SLOT_BYTES / 2, slot, noise(state));
	}
	write_torn(fd, text, used, state);
}

static void write_many(int fd, uint32_t *state)
{
	FILE *file = fdopen(dup(fd), "a");

	if (!file)
		abort();
	for (int i = 0; i < MANY_LINES; i++) {
		uint32_t slot = noise(state) % SLOTS;

		fprintf(file, "%" PRIx64 " %x slot %u of %u[OptimizedTier1]\n",
			world.base + (uint64_t)slot * SLOT_BYTES, SLOT_BYTES, slot, noise(state));
	}
	if (fclose(file))
		abort();
}

static int open_map(const char *path, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

	if (fd < 0)
		abort();
	return fd;
}

/* Truncates at the end of a line: the rest of a line would join with the next one. */
static void cut(const char *path, uint32_t *state)
{
	char text[2000];
	int fd = open(path, O_RDWR | O_CLOEXEC);
	ssize_t bytes = pread(fd, text, noise(state) % sizeof(text), 0);

	while (bytes > 0 && text[bytes - 1] != '\n')
		bytes--;
	if (fd < 0 || bytes < 0 || ftruncate(fd, bytes))
		abort();
	close(fd);
}

static void disturb(int *fd, uint32_t *state)
{
	switch (noise(state) % 40) {
	case 0: /* truncated while it is read */
		cut(world.path, state);
		break;
	case 1: /* rewritten in place */
		close(*fd);
		*fd = open_map(world.path, O_TRUNC | O_APPEND);
		if (noise(state) % 4 == 0)
			write_many(*fd, state);
		break;
	case 2: /* replaced by another file */
		close(*fd);
		*fd = open_map(world.other, O_TRUNC | O_APPEND);
		write_lines(*fd, state);
		if (rename(world.other, world.path))
			abort();
		break;
	case 3: /* a FIFO for some time */
		close(*fd);
		if (unlink(world.path) || mkfifo(world.path, 0644))
			abort();
		usleep(2000);
		if (unlink(world.path))
			abort();
		*fd = open_map(world.path, O_APPEND);
		break;
	default:
		break;
	}
}

static bool has_been_read(void)
{
	return world.named > 1000 && world.refreshed > 5 && world.reread > 0;
}

static void *write_map(void *context)
{
	uint32_t state = 7;
	int fd = open_map(world.path, O_APPEND);

	(void)context;
	write_many(fd, &state);
	/* Readers are slow under a sanitizer. */
	for (int step = 0; step < STEPS || (step < MOST_STEPS && !has_been_read()); step++) {
		write_lines(fd, &state);
		disturb(&fd, &state);
		usleep(1000);
	}
	close(fd);
	atomic_store(&world.done, true);
	return NULL;
}

/* ---- the readers ----------------------------------------------------------------------------- */

/* Names of a map are freed with the second map that replaces it, so this waits for threads that
 * still check an older answer. */
static void wait_for_checks(uint64_t rereads)
{
	for (size_t i = 0; i < RESOLVERS; i++)
		while (atomic_load(&world.checking_since[i]) < rereads)
			sched_yield();
}

static void *refresh(void *context)
{
	(void)context;
	while (!atomic_load(&world.done)) {
		enum sym_refresh found;

		wait_for_checks(atomic_load(&world.reread));
		must(sym_resolver_refresh(world.resolver, &found));
		atomic_fetch_add(&world.refreshed, found == SYM_REFRESH_EXTENDED);
		atomic_fetch_add(&world.reread, found == SYM_REFRESH_REPLACED);
		usleep(500);
	}
	return NULL;
}

static void check(const struct sym_answer *answer)
{
	unsigned int slot;
	uint64_t start = answer->address - answer->offset_bytes;

	if (answer->status != SYM_RESOLVED) {
		atomic_fetch_add(&world.lost, answer->status == SYM_NO_MATCH && answer->reason);
		return;
	}
	atomic_fetch_add(&world.named, 1);
	if (sscanf(answer->name, "slot %u of", &slot) != 1 ||
	    start != world.base + (uint64_t)slot * SLOT_BYTES || !answer->tier ||
	    strcmp(answer->tier, "OptimizedTier1") != 0) {
		atomic_fetch_add(&world.wrong, 1);
		fprintf(stderr, "%" PRIx64 " is not %s\n", answer->address, answer->name);
	}
}

static void *resolve(void *context)
{
	size_t number = (uintptr_t)context;
	uint32_t state = (uint32_t)number + 1;
	struct sym_result *result;
	uint64_t addresses[64];

	must(sym_result_create(&result));
	while (!atomic_load(&world.done)) {
		size_t count = 1 + noise(&state) % 64;

		atomic_store(&world.checking_since[number], atomic_load(&world.reread));
		for (size_t i = 0; i < count; i++)
			addresses[i] = world.base + noise(&state) % (SLOTS * SLOT_BYTES);
		must(sym_resolver_resolve(world.resolver, addresses, count, result));
		for (size_t i = 0; i < count; i++)
			check(sym_result_at(result, i));
	}
	atomic_store(&world.checking_since[number], UINT64_MAX);
	sym_result_destroy(result);
	return NULL;
}

/* ---- a line of 1 GiB ---------------------------------------------------------------------------
 */

static void long_line(void)
{
	int fd = open_map(world.path, O_TRUNC);
	char line[128];
	struct sym_result *result;
	uint64_t address = world.base + 5 * SLOT_BYTES;
	int bytes = snprintf(line, sizeof(line), "\n%" PRIx64 " 40 slot 5 of 1[OptimizedTier1]\n",
			     address);

	if (ftruncate(fd, (off_t)1 << 30) ||
	    pwrite(fd, line, (size_t)bytes, (off_t)1 << 30) != bytes)
		abort();
	close(fd);
	must(sym_resolver_refresh(world.resolver, NULL));
	must(sym_result_create(&result));
	must(sym_resolver_resolve(world.resolver, &address, 1, result));
	check(sym_result_at(result, 0));
	if (sym_result_at(result, 0)->status != SYM_RESOLVED)
		atomic_fetch_add(&world.wrong, 1);
	sym_result_destroy(result);
}

static void make_world(void)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_PERF_MAP };
	void *code = mmap(NULL, (size_t)SLOTS * SLOT_BYTES * 2, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		abort();
	world.base = (uintptr_t)code;
	snprintf(world.path, sizeof(world.path), "/tmp/perf-%d.map", (int)getpid());
	snprintf(world.other, sizeof(world.other), "/tmp/perf-%d.map.new", (int)getpid());
	must(sym_snapshot_open(getpid(), &opts, &world.snapshot));
	must(sym_resolver_create(world.snapshot, &world.resolver));
}

int main(void)
{
	pthread_t writer, refresher, resolvers[RESOLVERS];
	struct rusage usage;
	bool good;

	make_world();
	pthread_create(&writer, NULL, write_map, NULL);
	pthread_create(&refresher, NULL, refresh, NULL);
	for (uintptr_t i = 0; i < RESOLVERS; i++)
		pthread_create(&resolvers[i], NULL, resolve, (void *)i);
	pthread_join(writer, NULL);
	pthread_join(refresher, NULL);
	for (size_t i = 0; i < RESOLVERS; i++)
		pthread_join(resolvers[i], NULL);
	long_line();
	unlink(world.path);
	sym_resolver_destroy(world.resolver);
	sym_snapshot_close(world.snapshot);
	getrusage(RUSAGE_SELF, &usage);
	good = !world.wrong && has_been_read() && (size_t)usage.ru_maxrss << 10 < most_bytes;
	printf("%s race_perf_map: %" PRIu64 " names, %" PRIu64 " wrong, %" PRIu64 " lost, %" PRIu64
	       " refreshes, %" PRIu64 " rereads, %ld MB\n",
	       good ? "ok" : "FAILED", world.named, world.wrong, world.lost, world.refreshed,
	       world.reread, usage.ru_maxrss >> 10);
	return !good;
}
