/* SPDX-License-Identifier: MIT */
/*
 * The cost for a user of the library: sym_resolver_resolve() and sym_resolver_refresh() over this
 * very process, whose perf map has 1 M lines, against libbcc on the same addresses in alternation.
 * Answers are compared one by one.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/path.h"
#include "libsym/format/perf/perfmap.h"
#include "libsym/libsym.h"
#include "tests/bench/bcc_calls.h"
#include "tests/bench/bench.h"

enum {
	ROUNDS = 6,
	HEAPS = 4,
	LINES = 1000000,
	METHOD_BYTES = 48,
	LOOKUPS = 200000,
	BATCH = 1000,
	APPENDED = 1000,
	REFRESHES = 40,
	PROFILE = 2000
};

/* ---- the process and its map --------------------------------------------------------------- */

struct world {
	uint64_t heaps[HEAPS], ends[HEAPS], heap_bytes;
	uint64_t *starts;
	size_t lines;
	char path[64];
	int fd;
};

static void add_lines(struct world *world, size_t count)
{
	static const char *const tiers[] = { "QuickJitted", "OptimizedTier1", "InstrumentedTier" };
	struct buf text;
	char name[256];

	buf_init(&text, SIZE_MAX);
	for (size_t i = 0; i < count; i++) {
		size_t heap = noise() % HEAPS, number = world->lines;
		int bytes = snprintf(name, sizeof(name),
				     "instance void [Shop.Orders] Shop.Orders.Type%zu::Method%zu("
				     "class [System.Runtime]System.Object)[%s]",
				     number / 12, number, tiers[number % 3]);

		world->starts[world->lines++] = world->ends[heap];
		perfmap_write_line(&text, world->ends[heap], METHOD_BYTES, name, (size_t)bytes,
				   NULL);
		world->ends[heap] += 64 + noise() % 8 * 16;
		if (world->ends[heap] + 256 > world->heaps[heap] + world->heap_bytes)
			abort();
	}
	if (path_write_all(world->fd, text.data, text.size_bytes))
		abort();
	buf_deinit(&text);
}

static void make_world(struct world *world, size_t lines)
{
	size_t most_lines = lines + APPENDED * REFRESHES;

	world->starts = malloc(most_lines * sizeof(*world->starts));
	/* A method takes 120 of 160 bytes. */
	world->heap_bytes = most_lines / HEAPS * 160;
	for (size_t i = 0; i < HEAPS; i++) {
		void *heap = mmap(NULL, world->heap_bytes, PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (heap == MAP_FAILED)
			abort();
		world->heaps[i] = world->ends[i] = (uintptr_t)heap;
	}
	snprintf(world->path, sizeof(world->path), "/tmp/perf-%d.map", (int)getpid());
	world->fd = open(world->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (world->fd < 0)
		abort();
	add_lines(world, lines);
}

/* Each address is in the first bytes of a method. */
static uint64_t *random_addresses(const struct world *world, size_t lines, uint64_t method_bytes)
{
	uint64_t *addresses = malloc(LOOKUPS * sizeof(*addresses));

	for (size_t i = 0; i < LOOKUPS; i++)
		addresses[i] = world->starts[noise() % lines] + noise() % method_bytes;
	return addresses;
}

/* ---- libbcc ---------------------------------------------------------------------------------- */

struct bcc {
	struct bcc_calls calls;
	void *cache;
	double load_seconds;
};

static bool open_bcc(struct bcc *bcc, uint64_t address)
{
	struct bcc_symbol symbol;
	double begin;

	*bcc = (struct bcc){ 0 };
	if (!bcc_calls_open(&bcc->calls, bcc_library))
		return false;
	begin = seconds();
	bcc->cache = bcc->calls.cache_new(getpid(), NULL);
	bcc->calls.resolve(bcc->cache, address, &symbol);
	bcc->load_seconds = seconds() - begin;
	return true;
}

/* ---- figures -----------------------------------------------------------------------------------
 */

struct ours {
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;
};

static void must(struct sym_error *error)
{
	if (!error)
		return;
	fprintf(stderr, "%s\n", sym_error_message(error));
	abort();
}

static void resolve(const struct ours *ours, const uint64_t *addresses, size_t count)
{
	must(sym_resolver_resolve(ours->resolver, addresses, count, ours->result));
}

/* The best round of each, in seconds. */
struct look_up_times {
	double single, batch, peer;
};

enum way {
	SINGLE,
	IN_BATCHES,
	PEER,
	WAYS
};

static void look_up(enum way way, const struct ours *ours, struct bcc *bcc,
		    const uint64_t *addresses, struct look_up_times *times)
{
	struct bcc_symbol symbol;
	double begin = seconds();

	switch (way) {
	case SINGLE:
		for (size_t i = 0; i < LOOKUPS; i++)
			resolve(ours, &addresses[i], 1);
		least(&times->single, seconds() - begin);
		break;
	case IN_BATCHES:
		for (size_t i = 0; i < LOOKUPS; i += BATCH)
			resolve(ours, addresses + i, BATCH);
		least(&times->batch, seconds() - begin);
		break;
	default:
		for (size_t i = 0; bcc->cache && i < LOOKUPS / 10; i++)
			bcc->calls.resolve(bcc->cache, addresses[i], &symbol);
		least(&times->peer, bcc->cache ? seconds() - begin : 0);
	}
}

/* Caches keep state of the previous measurement, so every other round uses the reverse order. */
static struct look_up_times measure(const struct ours *ours, struct bcc *bcc,
				    const uint64_t *addresses)
{
	struct look_up_times times = { 0 };

	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < WAYS; i++)
			look_up(round % 2 ? WAYS - 1 - i : i, ours, bcc, addresses, &times);
	return times;
}

/* `what` and `state` are the name of a figure. */
static void look_up_figure(const char *what, const char *state, double our_seconds,
			   double their_seconds)
{
	char name[64];

	snprintf(name, sizeof(name), "resolver_%s%s", what, state);
	figure(name, our_seconds / LOOKUPS * 1e9, their_seconds / (LOOKUPS / 10) * 1e9,
	       (struct bench_goal){ .most_ratio = 0.1 }, "ns");
}

/* `state` is part of the figures' names. */
static void look_up_figures(const struct ours *ours, struct bcc *bcc, const uint64_t *addresses,
			    const char *state)
{
	struct look_up_times times = measure(ours, bcc, addresses);

	look_up_figure("find_single", state, times.single, times.peer);
	look_up_figure("find_batch", state, times.batch, times.peer);
}

/* As in a profile: a few addresses repeatedly. */
static void profile_figures(const struct ours *ours, struct bcc *bcc, const uint64_t *profile)
{
	uint64_t *addresses = malloc(LOOKUPS * sizeof(*addresses));

	for (size_t i = 0; i < LOOKUPS; i++)
		addresses[i] = profile[noise() % PROFILE];
	look_up_figures(ours, bcc, addresses, "_profile");
	free(addresses);
}

/* Native code of all libraries, as in a profile: a few addresses repeatedly. */
static void native_figures(const struct ours *ours, struct bcc *bcc)
{
	uint64_t *addresses = malloc(LOOKUPS * sizeof(*addresses)), profile[PROFILE];
	struct look_up_times times;
	struct sym_symbols *symbols;
	struct bcc_symbol symbol;

	must(sym_snapshot_symbols(ours->snapshot, SYM_SYMBOLS_ELF, &symbols));
	for (size_t i = 0; i < PROFILE; i++) {
		const struct sym_symbol *drawn =
			sym_symbols_at(symbols, noise() % sym_symbols_count(symbols));

		profile[i] = drawn->start + noise() % (drawn->size_bytes + !drawn->size_bytes);
		if (bcc->cache)
			bcc->calls.resolve(bcc->cache, profile[i], &symbol);
	}
	for (size_t i = 0; i < LOOKUPS; i++)
		addresses[i] = profile[noise() % PROFILE];
	times = measure(ours, bcc, addresses);
	look_up_figure("find_single", "_native_profile", times.single, times.peer);
	look_up_figure("find_batch", "_native_profile", times.batch, times.peer);
	sym_symbols_destroy(symbols);
	free(addresses);
}

static struct ours open_ours(void)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts), .jit = SYM_JIT_PERF_MAP };
	struct ours ours;

	must(sym_snapshot_open(getpid(), &opts, &ours.snapshot));
	must(sym_resolver_create(ours.snapshot, &ours.resolver));
	must(sym_result_create(&ours.result));
	return ours;
}

static void close_ours(struct ours *ours)
{
	sym_result_destroy(ours->result);
	sym_resolver_destroy(ours->resolver);
	sym_snapshot_close(ours->snapshot);
}

/* A thread that looks up beside another. */
struct lookers {
	const struct ours *ours;
	const uint64_t *addresses;
	_Atomic(bool) done;
};

static void *look_up_beside(void *context)
{
	struct lookers *lookers = context;
	struct ours ours = *lookers->ours;

	must(sym_result_create(&ours.result));
	while (!atomic_load(&lookers->done))
		for (size_t i = 0; i < LOOKUPS / 10; i++)
			resolve(&ours, &lookers->addresses[i], 1);
	sym_result_destroy(ours.result);
	return NULL;
}

static double seconds_beside(const struct ours *ours, const uint64_t *addresses)
{
	struct lookers lookers = { ours, addresses, false };
	struct look_up_times times = { 0 };
	struct bcc none = { 0 };
	pthread_t thread;

	if (pthread_create(&thread, NULL, look_up_beside, &lookers))
		abort();
	look_up(SINGLE, ours, &none, addresses, &times);
	atomic_store(&lookers.done, true);
	pthread_join(thread, NULL);
	return times.single;
}

/* Two threads look up at once, after a refresh and without one. Neither must wait for what the
 * other writes. */
static void figures_beside(const struct ours *ours, const uint64_t *addresses)
{
	struct ours frozen = open_ours();
	double refreshed_seconds = 0, frozen_seconds = 0;

	resolve(&frozen, addresses, BATCH);
	for (int round = 0; round < ROUNDS; round++) {
		least(&frozen_seconds, seconds_beside(&frozen, addresses));
		least(&refreshed_seconds, seconds_beside(ours, addresses));
	}
	figure("resolver_find_single_refreshed_beside_another", refreshed_seconds / LOOKUPS * 1e9,
	       frozen_seconds / LOOKUPS * 1e9, (struct bench_goal){ .most_ratio = 1.5 }, "ns");
	close_ours(&frozen);
}

/* No other thread is active, but the resolver cannot know that. */
static void *idle(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

/* In a program with threads: look-ups are counted after the first refresh. */
static void figures_with_threads(const struct ours *ours, struct bcc *bcc,
				 const uint64_t *addresses)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_t thread;

	pthread_mutex_lock(&lock);
	if (pthread_create(&thread, NULL, idle, &lock))
		abort();
	look_up_figures(ours, bcc, addresses, "_refreshed_with_threads");
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
}

static bool is_same(const struct sym_answer *answer, const struct bcc_symbol *symbol)
{
	char name[512];

	snprintf(name, sizeof(name), "%s%s%s%s", answer->name, answer->tier ? "[" : "",
		 answer->tier ? answer->tier : "", answer->tier ? "]" : "");
	return !strcmp(name, symbol->name) && answer->offset_bytes == symbol->offset;
}

static void compare(const struct ours *ours, struct bcc *bcc, const uint64_t *addresses)
{
	size_t same = 0, ours_only = 0, theirs_only = 0, different = 0;

	for (size_t i = 0; bcc->cache && i < LOOKUPS / 10; i++) {
		struct bcc_symbol symbol = { 0 };
		bool named = !bcc->calls.resolve(bcc->cache, addresses[i], &symbol);
		const struct sym_answer *answer;

		resolve(ours, &addresses[i], 1);
		answer = sym_result_at(ours->result, 0);
		if (answer->status != SYM_RESOLVED && !named)
			same++;
		else if (answer->status != SYM_RESOLVED)
			theirs_only++;
		else if (!named)
			ours_only++;
		else if (is_same(answer, &symbol))
			same++;
		else
			different++;
	}
	printf("resolver_same_answers same=%zu ours_only=%zu theirs_only=%zu different=%zu "
	       "(tiers put back behind our names) %s\n",
	       same, ours_only, theirs_only, different,
	       ours_only + theirs_only + different ? "short" : "ok");
}

/* The kernel's time to list mappings, which each refresh needs, with caches as cold as after
 * writing a thousand lines. */
static double maps_floor(void)
{
	static char text[1 << 20], others[4 << 20];
	double total = 0;

	for (int i = 0; i < REFRESHES; i++) {
		double begin;
		ssize_t got;
		off_t offset = 0;
		int fd;

		memset(others, i, sizeof(others));
		begin = seconds();
		fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
		while ((got = pread(fd, text, sizeof(text), offset)) > 0)
			offset += got;
		close(fd);
		total += seconds() - begin;
	}
	return total / REFRESHES;
}

static void refresh_figure(const struct ours *ours, struct world *world, const struct bcc *bcc)
{
	double best = 0, total = 0, ask = 0;

	/* Takes up libbcc, which has been loaded since, before anything is measured. */
	must(sym_resolver_refresh(ours->resolver, NULL));
	for (int i = 0; i < REFRESHES; i++) {
		enum sym_refresh found;
		double begin, took;

		add_lines(world, APPENDED);
		begin = seconds();
		must(sym_resolver_refresh(ours->resolver, &found));
		took = seconds() - begin;
		if (found != SYM_REFRESH_EXTENDED)
			abort();
		least(&best, took);
		total += took;
		begin = seconds();
		resolve(ours, &world->starts[world->lines - 1], 1);
		ask += seconds() - begin;
		if (sym_result_at(ours->result, 0)->status != SYM_RESOLVED)
			abort();
	}
	figure("resolver_refresh_1000_lines", best * 1e3, bcc->load_seconds * 1e3,
	       (struct bench_goal){ .most = 0.2 }, "ms");
	figure("resolver_refresh_1000_lines_mean", total / REFRESHES * 1e3, bcc->load_seconds * 1e3,
	       (struct bench_goal){ .most = 0.2, .floor = maps_floor() * 1e3 }, "ms");
	figure("resolver_first_find_after_refresh", ask / REFRESHES * 1e3, bcc->load_seconds * 1e3,
	       (struct bench_goal){ 0 }, "ms");
}

int main(void)
{
	uint64_t *addresses, *mixed;
	struct world world = { 0 };
	struct ours ours;
	struct bcc bcc;

	make_world(&world, LINES);
	/* Addresses in methods; then a quarter of them after the ends of methods. */
	addresses = random_addresses(&world, LINES, METHOD_BYTES);
	mixed = random_addresses(&world, LINES, METHOD_BYTES * 4 / 3);
	ours = open_ours();
	resolve(&ours, addresses, BATCH);
	if (!open_bcc(&bcc, addresses[0]))
		puts("resolver_bcc: libbcc.so.0 is not installed");
	profile_figures(&ours, &bcc, addresses);
	look_up_figures(&ours, &bcc, addresses, "");
	look_up_figures(&ours, &bcc, mixed, "_quarter_unnamed");
	compare(&ours, &bcc, mixed);
	native_figures(&ours, &bcc);
	refresh_figure(&ours, &world, &bcc);
	look_up_figures(&ours, &bcc, addresses, "_refreshed");
	look_up_figures(&ours, &bcc, mixed, "_refreshed_quarter_unnamed");
	figures_with_threads(&ours, &bcc, addresses);
	figures_beside(&ours, addresses);
	/* Addresses in appended lines; libbcc has to read the whole map again. */
	if (bcc.cache)
		bcc.calls.cache_free(bcc.cache, getpid());
	open_bcc(&bcc, addresses[0]);
	for (size_t i = 0; i < LOOKUPS; i++)
		addresses[i] = world.starts[LINES + noise() % (APPENDED * REFRESHES)] +
			       noise() % METHOD_BYTES;
	look_up_figures(&ours, &bcc, addresses, "_refreshed_appended");
	if (bcc.cache)
		bcc.calls.cache_free(bcc.cache, getpid());
	unlink(world.path);
	close_ours(&ours);
	free(world.starts);
	free(addresses);
	free(mixed);
	return 0;
}
