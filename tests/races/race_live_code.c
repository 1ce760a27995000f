/* SPDX-License-Identifier: MIT */
/*
 * What a runtime told is exchanged again and again while threads resolve, and glance, in the same
 * code. No answer may be a name of another place, and what a thread was told must be there until it
 * has looked at it, even where it looks several exchanges later. A plain program, so that
 * ThreadSanitizer can watch it. The oracle is the name, which says where it begins.
 */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "libsym/resolver.h"
#include "tests/races/race.h"

enum {
	ROUNDS = 1500,
	CHECKERS = 2,
	GLANCERS = 2,
	METHODS = 256,
	METHOD_BYTES = 0x100,
	CODE_BYTES = METHODS * METHOD_BYTES,
	QUESTIONS = 16,
	EXCHANGES_A_SET = 8,
};

static struct {
	uint64_t code;
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	/* Of the set of names; UINT64_MAX: nothing is checked. */
	_Atomic(uint64_t) changes, checking_since[CHECKERS];
	_Atomic(bool) done;
	_Atomic(uint64_t) resolved, glanced, wrong;
} world;

/* Half of the names are the same in every round. */
static struct live_code *tell(unsigned int round, struct index_name_set *names)
{
	struct live_code *code = calloc(1, sizeof(*code));
	struct told_methods told;

	told_methods_init(&told);
	told.items = calloc(METHODS, sizeof(*told.items));
	told.capacity = told.count = METHODS;
	if (!code || !told.items)
		abort();
	for (unsigned int i = 0; i < METHODS; i++) {
		uint64_t start = world.code + (uint64_t)i * METHOD_BYTES;
		size_t offset = told.names.size_bytes;

		buf_printf(&told.names, "method at %" PRIx64 " of %u", start, i % 2 ? round : 0);
		told.items[i] = (struct told_method){
			.start_address = start,
			.size_bytes = METHOD_BYTES,
			.name_offset = offset,
			.name_bytes = (uint32_t)(told.names.size_bytes - offset),
		};
	}
	must(runtime_source_open_told(&told, names, &code->source));
	told_methods_deinit(&told);
	code->info.way = SYM_JIT_RUNDOWN;
	code->had_runtime = true;
	return code;
}

static void check(uint64_t address, const char *name, uint64_t offset_bytes)
{
	uint64_t start;

	if (sscanf(name, "method at %" SCNx64, &start) == 1 && start == address - offset_bytes)
		return;
	atomic_fetch_add(&world.wrong, 1);
	fprintf(stderr, "%" PRIx64 " is not %s\n", address, name);
}

static uint64_t some_address(uint32_t *state)
{
	return world.code + noise(state) % CODE_BYTES;
}

/* What is checked may be some exchanges old; of the second set of names before, it must not be. */
static void *resolve(void *context)
{
	size_t number = (uintptr_t)context;
	uint32_t state = (uint32_t)number + 1;
	struct sym_result *result;

	must(sym_result_create(&result));
	while (!atomic_load(&world.done)) {
		uint64_t addresses[QUESTIONS];

		for (size_t i = 0; i < QUESTIONS; i++)
			addresses[i] = some_address(&state);
		atomic_store(&world.checking_since[number], atomic_load(&world.changes));
		must(sym_resolver_resolve(world.resolver, addresses, QUESTIONS, result));
		if (noise(&state) % 8 == 0)
			usleep(2000);
		for (size_t i = 0; i < QUESTIONS; i++) {
			const struct sym_answer *answer = sym_result_at(result, i);

			check(answer->address,
			      answer->status == SYM_RESOLVED ? answer->name : "nothing",
			      answer->offset_bytes);
		}
		atomic_store(&world.checking_since[number], UINT64_MAX);
		atomic_fetch_add(&world.resolved, QUESTIONS);
	}
	sym_result_destroy(result);
	return NULL;
}

/* Nobody waits for what these were told: the names are not looked at. */
static void *glance(void *context)
{
	struct sym_glance room = { .size = sizeof(room) };
	uint32_t state = (uint32_t)(uintptr_t)context + 100;

	while (!atomic_load(&world.done)) {
		uint64_t address = some_address(&state);

		if (!sym_resolver_glance(world.resolver, address, &room) ||
		    room.offset_bytes != (address - world.code) % METHOD_BYTES) {
			atomic_fetch_add(&world.wrong, 1);
			fprintf(stderr, "%" PRIx64 " is not known at a glance\n", address);
		}
		atomic_fetch_add(&world.glanced, 1);
	}
	return NULL;
}

static void wait_for_checks(uint64_t changes)
{
	for (size_t i = 0; i < CHECKERS; i++)
		while (atomic_load(&world.checking_since[i]) < changes)
			sched_yield();
}

static void *exchange(void *context)
{
	struct index_name_set *names = NULL;

	(void)context;
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		if (round % EXCHANGES_A_SET == 1) {
			wait_for_checks(atomic_load(&world.changes));
			index_name_set_release(names);
			must(index_name_set_create(&names));
		}
		resolver_exchange_live(world.resolver, tell(round, names));
		if (round % EXCHANGES_A_SET == 1)
			atomic_fetch_add(&world.changes, 1);
	}
	index_name_set_release(names);
	while (world.resolved < 1000 || world.glanced < 1000)
		usleep(1000);
	atomic_store(&world.done, true);
	return NULL;
}

static void make_world(void)
{
	void *code =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (code == MAP_FAILED)
		abort();
	world.code = (uintptr_t)code;
	for (size_t i = 0; i < CHECKERS; i++)
		atomic_store(&world.checking_since[i], UINT64_MAX);
	must(sym_snapshot_open(getpid(), NULL, &world.snapshot));
	/* As if a runtime had been asked. */
	atomic_store(&world.snapshot->ground->live_code.code, tell(0, NULL));
	must(sym_resolver_create(world.snapshot, &world.resolver));
}

int main(void)
{
	pthread_t threads[CHECKERS + GLANCERS + 1];
	size_t count = 0;
	bool good;

	make_world();
	for (uintptr_t i = 0; i < CHECKERS; i++)
		pthread_create(&threads[count++], NULL, resolve, (void *)i);
	for (uintptr_t i = 0; i < GLANCERS; i++)
		pthread_create(&threads[count++], NULL, glance, (void *)i);
	pthread_create(&threads[count++], NULL, exchange, NULL);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	sym_resolver_destroy(world.resolver);
	sym_snapshot_close(world.snapshot);
	good = !world.wrong;
	printf("%s race_live_code: %" PRIu64 " names, %" PRIu64
	       " glances while %d readings came, %" PRIu64 " wrong\n",
	       good ? "ok" : "FAILED", world.resolved, world.glanced, ROUNDS, world.wrong);
	return !good;
}
