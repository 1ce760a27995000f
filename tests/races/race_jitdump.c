/* SPDX-License-Identifier: MIT */
/*
 * A JIT overwrites code and records it in its jitdump, also in incomplete writes. One thread
 * refreshes, and three query the code at an address at a given time, and the present code with its
 * line. A plain program, so that ThreadSanitizer can watch it. The oracle is the name of the code,
 * which contains its address and time.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "tests/races/race.h"
#include "tests/support/waiting.h"

enum {
	STEPS = 8000,
	PLACES = 61, /* so the code of a step exists for as many steps */
	CODE_BYTES = 0x40,
	THREADS = 3,
	FIRST_NS = 1000000,
	STEP_NS = 10
};

static struct {
	struct sym_resolver *resolver;
	uint64_t code;
	int fd;
	FILE *stream;                      /* NULL: the dump is written without stdio */
	void *marker;                      /* the mapping by which perf and we find the file */
	_Atomic(size_t) written, taken_up; /* steps */
	_Atomic(bool) done;
	_Atomic(uint64_t) then, now, wrong, refreshes;
} world;

static void put(const void *bytes, size_t count)
{
	if (world.stream ? fwrite(bytes, 1, count, world.stream) != count
			 : path_write_all(world.fd, bytes, count) != 0)
		abort();
}

/* jitdump-specification.txt of perf: magic, version, size, machine, pad, pid, time, flags. */
static void put_header(void)
{
	const uint32_t words[] = { 0x4a695444, 1, 40, 62, 0, (uint32_t)getpid(), 1, 0, 0, 0 };

	put(words, sizeof(words));
}

static uint64_t place_of(size_t step)
{
	return world.code + step % PLACES * CODE_BYTES;
}

static uint64_t time_of(size_t step)
{
	return FIRST_NS + (uint64_t)step * STEP_NS;
}

/* The lines of the next code: one entry with the step, counted from 1. */
static void put_line(size_t step)
{
	char record[56] = { 0 };
	const uint32_t head[] = { 2, sizeof(record) };
	const uint64_t when = time_of(step);
	const uint64_t rest[] = { place_of(step), 1, place_of(step) };
	const uint32_t line[] = { (uint32_t)step + 1, 0 };

	memcpy(record, head, sizeof(head));
	memcpy(record + 8, &when, sizeof(when));
	memcpy(record + 16, rest, sizeof(rest));
	memcpy(record + 40, line, sizeof(line));
	memcpy(record + 48, "race.c", sizeof("race.c"));
	put(record, sizeof(record));
}

static void put_step(size_t step)
{
	char record[256], name[64];
	size_t name_bytes = (size_t)snprintf(name, sizeof(name), "at %" PRIx64 " step %zu",
					     place_of(step), step) +
			    1;
	const uint32_t head[] = { 0, (uint32_t)(56 + name_bytes + CODE_BYTES) };
	const uint32_t ids[] = { (uint32_t)getpid(), (uint32_t)getpid() };
	const uint64_t when = time_of(step);
	const uint64_t rest[] = { place_of(step), place_of(step), CODE_BYTES, step };
	size_t torn = step % 7 * 9;

	put_line(step);
	memset(record, 0, sizeof(record));
	memcpy(record, head, sizeof(head));
	memcpy(record + 8, &when, sizeof(when));
	memcpy(record + 16, ids, sizeof(ids));
	memcpy(record + 24, rest, sizeof(rest));
	memcpy(record + 56, name, name_bytes);
	put(record, torn);
	put(record + torn, head[1] - torn);
}

static void *write_dump(void *context)
{
	(void)context;
	for (size_t step = 1; step < STEPS; step++) {
		put_step(step);
		atomic_store(&world.written, step + 1);
		if (!(step % 16))
			usleep(1500);
	}
	return NULL;
}

static void *refresh(void *context)
{
	(void)context;
	while (!atomic_load(&world.done)) {
		size_t written = atomic_load(&world.written);

		must(sym_resolver_refresh(world.resolver, NULL));
		atomic_store(&world.taken_up, written);
		atomic_fetch_add(&world.refreshes, 1);
		usleep(1000);
	}
	return NULL;
}

static void wrong(const char *what, const struct sym_answer *answer, size_t step)
{
	fprintf(stderr, "%s: %" PRIx64 " of step %zu is %s\n", what, answer->address, step,
		answer->name ? answer->name : "-");
	atomic_fetch_add(&world.wrong, 1);
}

/* The code of an address at its start, and until just before the next code there. */
static void ask_then(struct sym_result *result, size_t step, size_t known, uint32_t *state)
{
	size_t later = noise(state) % PLACES;
	uint64_t address = place_of(step) + noise(state) % CODE_BYTES;
	uint64_t time_ns = time_of(step + (step + later < known ? later : 0));
	char expected[64];

	snprintf(expected, sizeof(expected), "at %" PRIx64 " step %zu", place_of(step), step);
	must(sym_resolver_resolve_at(world.resolver, &address, &time_ns, 1, result));
	if (!sym_result_at(result, 0)->name || strcmp(sym_result_at(result, 0)->name, expected) ||
	    sym_result_at(result, 0)->line != step + 1)
		wrong("then", sym_result_at(result, 0), step);
	atomic_fetch_add(&world.then, 1);
}

/* The code there now, from a step not older than the last refresh. */
static void ask_now(struct sym_result *result, size_t step, size_t known)
{
	uint64_t address = place_of(step), at = 0;
	size_t found = 0;

	must(sym_resolver_resolve(world.resolver, &address, 1, result));
	if (!sym_result_at(result, 0)->name ||
	    sscanf(sym_result_at(result, 0)->name, "at %" SCNx64 " step %zu", &at, &found) != 2 ||
	    at != address || found + PLACES < known ||
	    /* None if the next code came between the look-up and the search for the line. */
	    (sym_result_at(result, 0)->line && sym_result_at(result, 0)->line != found + 1))
		wrong("now", sym_result_at(result, 0), step);
	atomic_fetch_add(&world.now, 1);
}

static void *ask(void *context)
{
	uint32_t state = (uint32_t)(uintptr_t)context;
	struct sym_result *result;

	must(sym_result_create(&result));
	must(sym_result_set_fields(result, SYM_FIELD_LINES));
	while (!atomic_load(&world.done)) {
		size_t known = atomic_load(&world.taken_up);
		size_t step = noise(&state) % known;

		ask_then(result, step, known, &state);
		ask_now(result, step, known);
	}
	sym_result_destroy(result);
	return NULL;
}

/* stdio holds back up to 8 KiB; all of it counts. */
static void begin(struct sym_snapshot **snapshot, const char *path, bool with_stdio)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_PERF_MAP };
	void *code = mmap(NULL, PLACES * CODE_BYTES, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sym_result *result;

	memset(&world, 0, sizeof(world));
	world.code = (uintptr_t)code;
	world.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (code == MAP_FAILED || world.fd < 0)
		abort();
	if (with_stdio) {
		world.stream = fdopen(dup(world.fd), "w");
		if (!world.stream || setvbuf(world.stream, NULL, _IOFBF, 8192))
			abort();
	}
	put_header();
	put_step(0);
	world.marker = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, world.fd, 0);
	if (world.marker == MAP_FAILED)
		abort();
	must(sym_snapshot_open(getpid(), &opts, snapshot));
	must(sym_resolver_create(*snapshot, &world.resolver));
	must(sym_result_create(&result));
	must(sym_resolver_resolve(world.resolver, &world.code, 1, result));
	sym_result_destroy(result);
	atomic_store(&world.written, 1);
	atomic_store(&world.taken_up, 1);
}

/* Returns true if all was right. */
static bool race(const char *path, bool with_stdio)
{
	pthread_t writer, refresher, threads[THREADS];
	struct sym_snapshot *snapshot;

	begin(&snapshot, path, with_stdio);
	pthread_create(&refresher, NULL, refresh, NULL);
	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, ask, (void *)(i + 1));
	pthread_create(&writer, NULL, write_dump, NULL);
	pthread_join(writer, NULL);
	while (atomic_load(&world.taken_up) < STEPS)
		wait_pause();
	atomic_store(&world.done, true);
	pthread_join(refresher, NULL);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	printf("ok race_jitdump%s: %" PRIu64 " names as of a time, %" PRIu64 " as of now, %" PRIu64
	       " wrong, %" PRIu64 " refreshes\n",
	       with_stdio ? ", held back by stdio" : "", world.then, world.now, world.wrong,
	       world.refreshes);
	sym_resolver_destroy(world.resolver);
	sym_snapshot_close(snapshot);
	if (world.stream)
		fclose(world.stream);
	munmap(world.marker, 4096);
	close(world.fd);
	unlink(path);
	return !world.wrong && world.then >= 100;
}

int main(void)
{
	char directory[] = "/tmp/race-jitdump-XXXXXX", path[64], map[64];
	bool right = true;

	snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	unlink(map); /* of another process, which had this number */
	if (!mkdtemp(directory))
		abort();
	snprintf(path, sizeof(path), "%s/jit-%d.dump", directory, (int)getpid());
	for (int with_stdio = 0; with_stdio < 2; with_stdio++)
		right = race(path, with_stdio) && right;
	rmdir(directory);
	return !right;
}
