/* SPDX-License-Identifier: MIT */
/*
 * The methods of a runtime are replaced repeatedly while threads resolve addresses in the same
 * code. No answer may have the name of another address, and a name must stay valid until the thread
 * has read it, even several replacements later. A plain program, so that ThreadSanitizer can watch
 * it. The oracle is the name, which contains its start.
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
#include "libsym/resolver/resolver.h"
#include "tests/races/race.h"
#include "tests/support/waiting.h"

enum {
	ROUNDS = 1500,
	CHECKERS = 2,
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
	/* Replacements of the set of names; UINT64_MAX: nothing is being checked. */
	_Atomic(uint64_t) changes, checking_since[CHECKERS];
	_Atomic(bool) done;
	_Atomic(uint64_t) resolved, wrong;
} world;

/* Half of the names are equal in every round. */
static struct jitted_code *tell(unsigned int round, struct string_interner *names)
{
	struct jitted_code *code = calloc(1, sizeof(*code));
	struct reported_methods told;

	reported_methods_init(&told);
	told.items = calloc(METHODS, sizeof(*told.items));
	told.capacity = told.count = METHODS;
	if (!code || !told.items)
		abort();
	for (unsigned int i = 0; i < METHODS; i++) {
		uint64_t start = world.code + (uint64_t)i * METHOD_BYTES;
		size_t offset = told.names.size_bytes;

		buf_printf(&told.names, "method at %" PRIx64 " of %u", start, i % 2 ? round : 0);
		told.items[i] = (struct reported_method){
			.start_address = start,
			.size_bytes = METHOD_BYTES,
			.name_offset = offset,
			.name_bytes = (uint32_t)(told.names.size_bytes - offset),
		};
	}
	must(runtime_source_open_reported(&told, names, &code->source));
	reported_methods_deinit(&told);
	code->info.method = SYM_JIT_RUNDOWN;
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

/* A checked answer may be a few replacements old, but not from the second previous set of names. */
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

static void wait_for_checks(uint64_t changes)
{
	for (size_t i = 0; i < CHECKERS; i++)
		while (atomic_load(&world.checking_since[i]) < changes)
			sched_yield();
}

static void *exchange(void *context)
{
	struct string_interner *names = NULL;

	(void)context;
	for (unsigned int round = 1; round <= ROUNDS; round++) {
		if (round % EXCHANGES_A_SET == 1) {
			wait_for_checks(atomic_load(&world.changes));
			string_interner_release(names);
			must(string_interner_create(&names));
		}
		resolver_exchange_live(world.resolver, tell(round, names));
		if (round % EXCHANGES_A_SET == 1)
			atomic_fetch_add(&world.changes, 1);
	}
	string_interner_release(names);
	while (world.resolved < 1000)
		wait_pause();
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
	/* As if a runtime had been queried. */
	atomic_store(&world.snapshot->ground->jitted_code.code, tell(0, NULL));
	must(sym_resolver_create(world.snapshot, &world.resolver));
}

int main(void)
{
	pthread_t threads[CHECKERS + 1];
	size_t count = 0;
	bool good;

	make_world();
	for (uintptr_t i = 0; i < CHECKERS; i++)
		pthread_create(&threads[count++], NULL, resolve, (void *)i);
	pthread_create(&threads[count++], NULL, exchange, NULL);
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	sym_resolver_destroy(world.resolver);
	sym_snapshot_close(world.snapshot);
	good = !world.wrong;
	printf("%s race_live_code: %" PRIu64 " names while %d readings came, %" PRIu64 " wrong\n",
	       good ? "ok" : "FAILED", world.resolved, ROUNDS, world.wrong);
	return !good;
}
