/* SPDX-License-Identifier: MIT */
/*
 * Libraries, assemblies and jitted code are mapped and unmapped while three threads resolve, two
 * list images and one refreshes. No answer may have the name of another address, and a name must
 * stay valid until the thread has read it. A plain program, so that ThreadSanitizer can watch it.
 * The oracles are the dynamic linker, and names that contain their start.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/base/path.h"
#include "libsym/libsym.h"
#include "libsym/snapshot/snapshot.h"
#include "tests/races/race.h"
#include "tests/support/waiting.h"

enum {
	STEPS = 80,
	STEP_US = 15000,
	ALIVE = 3, /* steps until a mapping is removed */
	CHECKERS = 2,
	RESOLVERS = CHECKERS + 1,
	OTHERS = 4,
	FUNCTIONS = 4,
	QUESTIONS = FUNCTIONS + 3,
	CODE_BYTES = 0x4000,
	METHOD_BYTES = 0x40,
	CODE_AT = 0x10000, /* in the assembly */
	ASSEMBLY_BYTES = 0x19000,
};

static const char *const functions[FUNCTIONS] = { "compress", "uncompress", "adler32", "inflate" };
static const char assembly[] = "fixtures/recorded/opt/sample/sample.dll";

/* The mappings of one step; written once, before `steps` counts it. */
struct step {
	void *library;
	uint64_t base, code, assembly;
};

static struct {
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	char prefix[64], map[64];
	struct buf library_bytes, assembly_bytes;
	void *oracle; /* a copy of the library that stays loaded */
	uint64_t oracle_base, vaddr[FUNCTIONS];
	struct step step[STEPS];
	_Atomic(size_t) steps;
	_Atomic(uint64_t) refreshes, checking_since[CHECKERS]; /* UINT64_MAX: nothing is checked */
	_Atomic(bool) done;
	_Atomic(uint64_t) native, jitted, managed, listed, wrong, mapped;
} world;

/* ---- mappings --------------------------------------------------------------------------- */

static void write_file(const char *path, const struct buf *bytes, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);

	if (fd < 0 || path_write_all(fd, bytes->data, bytes->size_bytes))
		abort();
	close(fd);
}

static void *load(const char *path, uint64_t *base_ret)
{
	struct link_map *map;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map))
		abort();
	*base_ret = map->l_addr;
	return library;
}

static void name_of_step(char *room, size_t size_bytes, size_t number, const char *kind)
{
	snprintf(room, size_bytes, "%s-%zu.%s", world.prefix, number, kind);
}

/* As a runtime does: the headers, and the code where the headers place it. */
static uint64_t map_assembly(size_t number)
{
	char path[128], *start;
	int fd;

	name_of_step(path, sizeof(path), number, "dll");
	write_file(path, &world.assembly_bytes, O_EXCL);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	start = mmap(NULL, ASSEMBLY_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || start == MAP_FAILED ||
	    mmap(start, 0x1000, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(start + CODE_AT, ASSEMBLY_BYTES - CODE_AT, PROT_READ | PROT_EXEC,
		 MAP_PRIVATE | MAP_FIXED, fd, 0) == MAP_FAILED)
		abort();
	close(fd);
	return (uintptr_t)start;
}

/* Methods in newly mapped memory; their names contain their start. */
static uint64_t compile(void)
{
	void *code =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct buf text;

	if (code == MAP_FAILED)
		abort();
	buf_init(&text, (size_t)1 << 20);
	for (uint64_t at = 0; at < CODE_BYTES; at += METHOD_BYTES)
		buf_printf(&text, "%" PRIx64 " %x method at %" PRIx64 "\n", (uintptr_t)code + at,
			   METHOD_BYTES, (uintptr_t)code + at);
	write_file(world.map, &text, O_APPEND);
	buf_deinit(&text);
	return (uintptr_t)code;
}

static void make_step(size_t number)
{
	struct step *step = &world.step[number];
	char path[128];

	name_of_step(path, sizeof(path), number, "so");
	write_file(path, &world.library_bytes, O_EXCL);
	step->library = load(path, &step->base);
	step->assembly = map_assembly(number);
	step->code = compile();
	atomic_store(&world.steps, number + 1);
}

static void end_step(size_t number)
{
	struct step *step = &world.step[number];

	dlclose(step->library);
	munmap((void *)(uintptr_t)step->assembly, ASSEMBLY_BYTES);
	munmap((void *)(uintptr_t)step->code, CODE_BYTES);
}

static void remove_files(void)
{
	char path[128];

	for (size_t i = 0; i <= STEPS; i++) {
		name_of_step(path, sizeof(path), i, "so");
		unlink(path);
		name_of_step(path, sizeof(path), i, "dll");
		unlink(path);
	}
	unlink(world.map);
}

/* ---- readers ---------------------------------------------------------------------------- */

/* Names of an unmapped file are freed with the second refresh that finds a change, so this waits
 * for threads that still check an older answer. */
static void wait_for_checks(uint64_t refreshes)
{
	for (size_t i = 0; i < CHECKERS; i++)
		while (atomic_load(&world.checking_since[i]) < refreshes)
			sched_yield();
}

static void *refresh(void *context)
{
	(void)context;
	while (!atomic_load(&world.done)) {
		enum sym_refresh found;

		wait_for_checks(atomic_load(&world.refreshes));
		must(sym_resolver_refresh(world.resolver, &found));
		atomic_fetch_add(&world.refreshes, 1);
		atomic_fetch_add(&world.mapped, found == SYM_REFRESH_REMAPPED);
		usleep(1000);
	}
	return NULL;
}

static void complain(uint64_t address, const char *name)
{
	atomic_fetch_add(&world.wrong, 1);
	fprintf(stderr, "%" PRIx64 " is not %s\n", address, name);
}

static void check_jitted(uint64_t address, const char *name, uint64_t offset_bytes)
{
	uint64_t start;

	if (sscanf(name, "method at %" SCNx64, &start) != 1 || start != address - offset_bytes)
		complain(address, name);
}

/* Each path was loaded once. */
static void check_native(const struct sym_answer *answer, size_t number)
{
	uint64_t vaddr;
	void *symbol = dlsym(world.oracle, answer->name);

	/* A library that is being loaded at the addresses of another one; its base is not written
	 * yet. */
	if (number >= atomic_load(&world.steps))
		return;
	vaddr = answer->address - answer->offset_bytes - world.step[number].base;
	/* The mapping was replaced by another one, for which the linker has no name. */
	if (strstr(answer->name, "@plt"))
		return;
	if (!symbol || (uintptr_t)symbol - world.oracle_base != vaddr)
		complain(answer->address, answer->name);
	atomic_fetch_add(&world.native, 1);
}

static void check(const struct sym_answer *answer)
{
	size_t length = strlen(world.prefix);

	if (answer->status == SYM_RESOLVED && answer->source == SYM_SOURCE_PERF_MAP) {
		check_jitted(answer->address, answer->name, answer->offset_bytes);
		atomic_fetch_add(&world.jitted, 1);
	} else if (!strncmp(answer->image_path, world.prefix, length)) {
		const char *number = answer->image_path + length + 1;

		if (answer->status == SYM_RESOLVED && strstr(number, ".so"))
			check_native(answer, strtoul(number, NULL, 10));
		else if (strstr(number, ".dll"))
			atomic_fetch_add(&world.managed, 1);
	}
	if (answer->reason && !*answer->reason)
		complain(answer->address, "without a reason");
}

static size_t some_step(uint32_t *state)
{
	size_t steps = atomic_load(&world.steps), back = noise(state) % (2 * ALIVE);

	return back < steps ? steps - 1 - back : 0;
}

static void ask(struct sym_result *result, uint32_t *state)
{
	const struct step *step = &world.step[some_step(state)];
	uint64_t addresses[QUESTIONS];

	for (size_t i = 0; i < FUNCTIONS; i++)
		addresses[i] = step->base + world.vaddr[i] + noise(state) % 4;
	addresses[FUNCTIONS] = step->code + noise(state) % CODE_BYTES;
	addresses[FUNCTIONS + 1] =
		step->assembly + CODE_AT + noise(state) % (ASSEMBLY_BYTES - CODE_AT);
	addresses[FUNCTIONS + 2] = (uintptr_t)ask;
	must(sym_resolver_resolve(world.resolver, addresses, QUESTIONS, result));
}

/* The last thread does not read its answers, so no refresh waits for it: a look-up must survive any
 * number of refreshes. */
static void *resolve(void *context)
{
	size_t number = (uintptr_t)context;
	uint32_t state = (uint32_t)number + 1;
	struct sym_result *result;

	must(sym_result_create(&result));
	must(sym_result_set_fields(result, number ? SYM_FIELD_LINES | SYM_FIELD_INLINED : 0));
	while (!atomic_load(&world.done)) {
		if (number < CHECKERS)
			atomic_store(&world.checking_since[number], atomic_load(&world.refreshes));
		ask(result, &state);
		for (size_t i = 0; number < CHECKERS && i < QUESTIONS; i++)
			check(sym_result_at(result, i));
		if (number < CHECKERS)
			atomic_store(&world.checking_since[number], UINT64_MAX);
	}
	sym_result_destroy(result);
	return NULL;
}

static void *list(void *context)
{
	(void)context;
	while (!atomic_load(&world.done)) {
		size_t count = sym_snapshot_image_count(world.snapshot);
		struct sym_symbols *symbols;

		must(sym_snapshot_symbols(world.snapshot,
					  SYM_SYMBOLS_PERF_MAP | SYM_SYMBOLS_PRECOMPILED |
						  SYM_SYMBOLS_RUNTIME,
					  &symbols));
		for (size_t i = 0; i < sym_symbols_count(symbols); i++) {
			uint32_t index = sym_symbols_at(symbols, i)->image_index;

			if (index != UINT32_MAX && index >= count)
				complain(index, "the number of an image");
		}
		atomic_fetch_add(&world.listed, sym_symbols_count(symbols));
		sym_symbols_destroy(symbols);
		usleep(2000);
	}
	return NULL;
}

/* Like naming a composite, which searches for its assemblies among all images. */
static void *list_images(void *context)
{
	const struct assembly_company *company = &world.snapshot->ground->context.company.images;

	(void)context;
	while (!atomic_load(&world.done)) {
		struct object_file **files;
		size_t count;

		sym_error_destroy(company->list(company->context, &files, &count));
		for (size_t i = 0; i < count; i++)
			object_file_close(files[i]);
		free(files);
		atomic_fetch_add(&world.listed, count);
		usleep(500);
	}
	return NULL;
}

/* ---- the race --------------------------------------------------------------------------- */

static void read_file(const char *path, struct buf *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	buf_init(ret, (size_t)1 << 26);
	if (fd < 0 || path_read_all(fd, ret))
		abort();
	close(fd);
}

static bool make_world(void)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts) };
	void *system = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
	struct link_map *map;
	char path[128];

	if (!system || dlinfo(system, RTLD_DI_LINKMAP, &map) || access(assembly, R_OK))
		return false;
	snprintf(world.prefix, sizeof(world.prefix), "/tmp/race-refresh-%d", (int)getpid());
	snprintf(world.map, sizeof(world.map), "/tmp/perf-%d.map", (int)getpid());
	read_file(map->l_name, &world.library_bytes);
	read_file(assembly, &world.assembly_bytes);
	name_of_step(path, sizeof(path), STEPS, "so");
	write_file(path, &world.library_bytes, O_EXCL);
	world.oracle = load(path, &world.oracle_base);
	for (size_t i = 0; i < FUNCTIONS; i++)
		world.vaddr[i] = (uintptr_t)dlsym(world.oracle, functions[i]) - world.oracle_base;
	for (size_t i = 0; i < CHECKERS; i++)
		atomic_store(&world.checking_since[i], UINT64_MAX);
	make_step(0);
	must(sym_snapshot_open(getpid(), &opts, &world.snapshot));
	must(sym_resolver_create(world.snapshot, &world.resolver));
	return true;
}

static void *change(void *context)
{
	(void)context;
	for (size_t i = 1; i < STEPS; i++) {
		make_step(i);
		usleep(STEP_US);
		while (atomic_load(&world.refreshes) < i / 4)
			wait_pause();
		if (i >= ALIVE)
			end_step(i - ALIVE);
	}
	atomic_store(&world.done, true);
	return NULL;
}

int main(void)
{
	void *(*const others[])(void *) = { change, refresh, list, list_images };
	pthread_t threads[RESOLVERS + OTHERS];
	bool good;

	if (!make_world()) {
		printf("skipped race_refresh: no libz.so.1, or not run beside the fixtures\n");
		return 0;
	}
	for (uintptr_t i = 0; i < RESOLVERS; i++)
		pthread_create(&threads[i], NULL, resolve, (void *)i);
	for (size_t i = 0; i < OTHERS; i++)
		pthread_create(&threads[RESOLVERS + i], NULL, others[i], NULL);
	for (size_t i = 0; i < RESOLVERS + OTHERS; i++)
		pthread_join(threads[i], NULL);
	sym_resolver_destroy(world.resolver);
	sym_snapshot_close(world.snapshot);
	remove_files();
	buf_deinit(&world.library_bytes);
	buf_deinit(&world.assembly_bytes);
	good = !world.wrong && world.native > 100 && world.jitted > 100 && world.managed > 100 &&
	       world.listed && world.mapped > 3;
	printf("%s race_refresh: %" PRIu64 " native names, %" PRIu64 " jitted, %" PRIu64
	       " in assemblies, %" PRIu64 " wrong, %" PRIu64 " refreshes with other files\n",
	       good ? "ok" : "FAILED", world.native, world.jitted, world.managed, world.wrong,
	       world.mapped);
	return !good;
}
