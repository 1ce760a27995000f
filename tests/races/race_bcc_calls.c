/* SPDX-License-Identifier: MIT */
/*
 * Several threads that share their caches call the functions of libsym-bcc at random, correctly and
 * wrongly: with caches that were freed, invalid caches, caches of processes that end, and of the
 * kernel. At the same time perf maps are written, truncated, replaced and removed, with names of 64
 * KB and malformed lines. Nothing may crash. Where a thread owns its cache, answers must be
 * complete: a function of this program has its name or none. A plain program, for the sanitizers.
 */
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/bcc/libsym-bcc.h"
#include "tests/races/race.h"

#ifdef __SANITIZE_THREAD__
#define RACE_STEPS 20 /* makes each read of a process ten times as expensive */
#else
#define RACE_STEPS 120
#endif

enum {
	THREADS = 3,
	STEPS = RACE_STEPS,
	SHARED = 12,
	CODE_BYTES = 0x10000,
	LONG_NAME_BYTES = 65536,
	OPERATIONS = 13,
};

static struct {
	_Atomic(void *) caches[SHARED], build_ids[4];
	atomic_int child;
	uint64_t code;
	char map_path[64];
	char *long_name;
	atomic_uint named;
} world;

struct caller {
	pthread_t thread;
	uint32_t state;
	void *own; /* a cache that no other thread uses */
};

int race_bcc_landmark(volatile unsigned int *x);

__attribute__((noinline, used)) int race_bcc_landmark(volatile unsigned int *x)
{
	for (unsigned int i = 0; i < 100; i++)
		*x += *x * i;
	return (int)*x;
}

static uint32_t below(struct caller *caller, uint32_t end)
{
	return noise(&caller->state) % end;
}

static int some_pid(struct caller *caller)
{
	const int pids[] = { getpid(), atomic_load(&world.child), 0, -1, 999999999, INT_MIN };

	return pids[below(caller, sizeof(pids) / sizeof(pids[0]))];
}

static uint64_t some_address(struct caller *caller)
{
	const uint64_t places[] = { world.code, (uint64_t)(uintptr_t)race_bcc_landmark,
				    (uint64_t)(uintptr_t)&strtoul, 0, UINT64_MAX - CODE_BYTES };

	return places[below(caller, sizeof(places) / sizeof(places[0]))] +
	       below(caller, CODE_BYTES);
}

/* A cache that is in use, was in use, or never existed. */
static void *some_cache(struct caller *caller)
{
	uint32_t which = below(caller, SHARED + 3);

	if (which < SHARED)
		return atomic_load(&world.caches[which]);
	if (which == SHARED)
		return NULL;
	return (void *)(uintptr_t)(which == SHARED + 1 ? (uint64_t)(uintptr_t)&world
						       : (uint64_t)below(caller, UINT32_MAX) << 4);
}

/* ---- the perf map ------------------------------------------------------------------ */

static void write_lines(struct caller *caller, FILE *map)
{
	static const char *const wrong[] = { "zz 10 x\n", "\n", "10\n", "ffffffffffffffff 1 end\n",
					     "1 ffffffffffffffff all\n" };

	for (uint32_t i = below(caller, 40); i > 0; i--) {
		uint64_t start = world.code + below(caller, CODE_BYTES);
		uint32_t kind = below(caller, 20);

		if (kind == 0)
			fputs(wrong[below(caller, sizeof(wrong) / sizeof(wrong[0]))], map);
		else
			fprintf(map, "%lx %x %s\n", start, below(caller, 0x200),
				kind == 1 ? world.long_name : "method");
	}
	if (below(caller, 4) == 0)
		fprintf(map, "%lx 20 torn", world.code);
}

static void change_map(struct caller *caller)
{
	const char *modes[] = { "a", "a", "w" };
	uint32_t kind = below(caller, 6);
	FILE *map = NULL;
	char beside[80];

	if (kind == 0)
		unlink(world.map_path);
	else if (kind == 1 && truncate(world.map_path, below(caller, 500)) < 0)
		return;
	if (kind == 2) {
		snprintf(beside, sizeof(beside), "%s.%x", world.map_path, caller->state);
		map = fopen(beside, "we");
	} else if (kind > 2) {
		map = fopen(world.map_path, modes[kind - 3]);
	}
	if (!map)
		return;
	write_lines(caller, map);
	fclose(map);
	if (kind == 2 && rename(beside, world.map_path) < 0)
		unlink(beside);
}

/* ---- calls ---------------------------------------------------------------------------- */

static void *new_cache(struct caller *caller, int pid)
{
	struct bcc_symbol_option option = { (int)below(caller, 2), (int)below(caller, 2),
					    (int)below(caller, 2), below(caller, UINT16_MAX + 1) };

	return bcc_symcache_new(pid, below(caller, 2) ? &option : NULL);
}

/* The previous cache is freed or leaked, as callers do; leaked ones are freed at the end. */
static void put_new(struct caller *caller)
{
	uint32_t place = below(caller, SHARED);

	bcc_free_symcache(
		atomic_exchange(&world.caches[place], new_cache(caller, some_pid(caller))),
		some_pid(caller));
}

static void resolve_shared(struct caller *caller)
{
	struct bcc_symbol symbol = { 0 };
	void *cache = some_cache(caller);
	uint64_t address = some_address(caller);

	if (below(caller, 2))
		bcc_symcache_resolve_no_demangle(cache, address,
						 below(caller, 20) ? &symbol : NULL);
	else if (bcc_symcache_resolve(cache, address, &symbol) == 0)
		bcc_symbol_free_demangle_name(&symbol);
}

static void check_whole(int found, const struct bcc_symbol *symbol)
{
	if ((found == 0) != (symbol->name != NULL))
		abort();
	if (symbol->name && strlen(symbol->name) > (1u << 20))
		abort();
	if (symbol->module && !strlen(symbol->module))
		abort();
}

static void resolve_own(struct caller *caller)
{
	uint64_t landmark = (uint64_t)(uintptr_t)race_bcc_landmark;
	struct bcc_symbol symbol;
	int found = bcc_symcache_resolve(caller->own, some_address(caller), &symbol);

	check_whole(found, &symbol);
	if (found == 0)
		bcc_symbol_free_demangle_name(&symbol);
	found = bcc_symcache_resolve_no_demangle(caller->own, landmark + 4, &symbol);
	check_whole(found, &symbol);
	/* In libbcc a line of a perf map can cover any address; it is used after the files. */
	if (found == 0 && (strcmp(symbol.name, "race_bcc_landmark") != 0 || symbol.offset != 4))
		abort();
	atomic_fetch_add(&world.named, found == 0);
}

static void resolve_name(struct caller *caller)
{
	const char *modules[] = { world.map_path, "/proc/self/exe", "[vdso]", "", "/no/such" };
	const char *names[] = { "method", world.long_name, "strtoul", "" };
	uint64_t address;

	bcc_symcache_resolve_name(below(caller, 2) ? caller->own : some_cache(caller),
				  below(caller, 9) ? modules[below(caller, 5)] : NULL,
				  below(caller, 9) ? names[below(caller, 4)] : NULL,
				  below(caller, 9) ? &address : NULL);
}

static void use_build_ids(struct caller *caller)
{
	_Atomic(void *) *place = &world.build_ids[below(caller, 4)];
	struct bpf_stack_build_id frame = { .status = (int)below(caller, 4),
					    .offset = some_address(caller) };
	struct bcc_symbol symbol;

	switch (below(caller, 6)) {
	case 0:
		bcc_free_buildsymcache(atomic_exchange(place, bcc_buildsymcache_new()));
		break;
	case 1:
		/* and leaves it to other threads to free */
		bcc_free_buildsymcache(atomic_load(place));
		break;
	case 2:
		bcc_buildsymcache_add_module(atomic_load(place), "/proc/self/exe");
		break;
	case 3:
		bcc_buildsymcache_resolve(&frame, &frame, &symbol);
		break;
	default:
		bcc_buildsymcache_resolve(atomic_load(place), below(caller, 9) ? &frame : NULL,
					  below(caller, 9) ? &symbol : NULL);
	}
}

static int start_child(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(600);
		for (;;)
			pause();
	}
	return pid;
}

static void renew_child(void)
{
	int old = atomic_load(&world.child), fresh = start_child();

	/* The first thread has replaced it; the other ends its own. */
	if (!atomic_compare_exchange_strong(&world.child, &old, fresh))
		old = fresh;
	kill(old, SIGKILL);
	waitpid(old, NULL, 0);
}

static void renew_own(struct caller *caller)
{
	bcc_free_symcache(caller->own, (int)below(caller, 3) - 1);
	caller->own = new_cache(caller, getpid());
}

static void step(struct caller *caller)
{
	switch (below(caller, OPERATIONS)) {
	case 0:
		put_new(caller);
		break;
	case 1:
		bcc_free_symcache(some_cache(caller), some_pid(caller));
		break;
	case 2:
		bcc_symcache_refresh(below(caller, 2) ? caller->own : some_cache(caller));
		break;
	case 3:
		resolve_name(caller);
		break;
	case 4:
		use_build_ids(caller);
		break;
	case 5:
		change_map(caller);
		break;
	case 6:
		if (!below(caller, 8))
			renew_child();
		else if (!below(caller, 4))
			bcc_free_memory();
		break;
	case 7:
		if (!below(caller, 6))
			renew_own(caller);
		break;
	case 8:
	case 9:
		resolve_shared(caller);
		break;
	default:
		resolve_own(caller);
	}
}

static void *call(void *context)
{
	struct caller *caller = context;

	caller->own = new_cache(caller, getpid());
	for (int i = 0; i < STEPS; i++)
		step(caller);
	bcc_free_symcache(caller->own, getpid());
	return NULL;
}

static void free_all(void)
{
	for (size_t i = 0; i < SHARED; i++)
		bcc_free_symcache(atomic_exchange(&world.caches[i], NULL), 0);
	for (size_t i = 0; i < 4; i++)
		bcc_free_buildsymcache(atomic_exchange(&world.build_ids[i], NULL));
}

static void run_round(uint32_t round)
{
	struct caller callers[THREADS] = { 0 };

	for (uint32_t i = 0; i < THREADS; i++) {
		callers[i].state = round * 977 + i * 131 + 1;
		if (pthread_create(&callers[i].thread, NULL, call, &callers[i]))
			abort();
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(callers[i].thread, NULL);
	free_all();
}

int main(int argc, char **argv)
{
	static const char *const settings[] = { "LIBSYM_BCC_REFRESH_MS", "LIBSYM_BCC_NAMES",
						"LIBSYM_BCC_TIERS" };
	static const char *const values[] = { "0", "short", "strip" };
	uint32_t first = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	volatile unsigned int value = 1;

	race_bcc_landmark(&value);
	world.code = (uint64_t)(uintptr_t)mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	world.long_name = malloc(LONG_NAME_BYTES + 1);
	if (world.code == (uint64_t)(uintptr_t)MAP_FAILED || !world.long_name)
		abort();
	memset(world.long_name, 'n', LONG_NAME_BYTES);
	world.long_name[LONG_NAME_BYTES] = '\0';
	snprintf(world.map_path, sizeof(world.map_path), "/tmp/perf-%d.map", (int)getpid());
	world.child = start_child();
	/* Each setting alone. No thread reads the environment while it changes. */
	for (uint32_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		setenv(settings[i], values[i], 1);
		run_round(first + i);
		unsetenv(settings[i]);
	}
	kill(world.child, SIGKILL);
	waitpid(world.child, NULL, 0);
	unlink(world.map_path);
	free(world.long_name);
	printf("%s race_bcc_calls: %d calls by %d threads, %u own functions named\n",
	       world.named ? "ok" : "FAILED", THREADS * STEPS * 4, THREADS, world.named);
	return world.named ? 0 : 1;
}
