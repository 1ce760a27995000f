/* SPDX-License-Identifier: MIT */
/*
 * Look-ups of jitted code while its map grows, compared with a model in which each line paints over
 * earlier ones. Answers must equal the model's after each refresh, one at a time and in batches.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/libsym.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/proc_tree.h"

enum {
	HEAPS = 6,
	HEAP_BYTES = 0x20000,
	MOST_LINES = 40000,
	QUESTIONS = 600
};

/* Two adjacent ones with one path, one after them with another, and others far away. */
static const struct {
	uint64_t start;
	const char *what, *path;
} heaps[HEAPS] = {
	{ 0x7f1000000000, "rwxp 00000000 00:00 0 ", "" },
	{ 0x7f1000020000, "rwxp 00000000 00:00 0 ", "" },
	{ 0x7f1000040000, "r-xs 00000000 00:01 9 /memfd:doublemapper (deleted)",
	  "/memfd:doublemapper" },
	{ 0x7f1040000000, "r-xs 00000000 00:01 9 /memfd:doublemapper (deleted)",
	  "/memfd:doublemapper" },
	{ 0x7f2000000000, "rwxp 00000000 00:00 0 ", "" },
	{ 0x7f3000000000, "rwxp 00000000 00:00 0 ", "" },
};

struct line {
	uint64_t start, size_bytes;
	const char *tier;
	bool stub;
};

struct world {
	struct proc_tree tree;
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;
	char *path;
	struct line *lines;
	int line_count;
	uint64_t next[HEAPS]; /* where the next adjacent method goes */
	/* For each byte the last line that covers it, and the last one without a size; -1: none. */
	int *owner, *label;
};

static int *cell_of(int *cells, uint64_t address)
{
	for (size_t i = 0; i < HEAPS; i++)
		if (address - heaps[i].start < HEAP_BYTES)
			return &cells[i * HEAP_BYTES + (address - heaps[i].start)];
	return NULL;
}

static void paint(struct world *world, const struct line *line)
{
	int number = world->line_count, *cell;

	world->lines[world->line_count++] = *line;
	for (uint64_t i = 0; i < line->size_bytes; i++) {
		cell = cell_of(world->owner, line->start + i);
		if (cell)
			*cell = number;
	}
	cell = line->size_bytes ? NULL : cell_of(world->label, line->start);
	if (cell)
		*cell = number;
}

/* Most methods are adjacent; others replace old ones, have no size, or are large. */
static struct line invent(struct world *world, bool scattered)
{
	static const char *const tiers[] = { NULL, "QuickJitted", "OptimizedTier1" };
	size_t heap = (size_t)random() % HEAPS;
	long what = random() % 100;
	struct line line = { .tier = tiers[random() % 3], .stub = random() % 9 == 0 };

	line.start = heaps[heap].start + (uint64_t)(random() % HEAP_BYTES);
	line.size_bytes = (uint64_t)(1 + random() % 200);
	if (what < 3)
		line.size_bytes = 0;
	else if (what == 3 && scattered)
		line.size_bytes = (uint64_t)(0x8000 + random() % HEAP_BYTES);
	else if (!scattered && world->next[heap] + 256 < heaps[heap].start + HEAP_BYTES) {
		line.start = world->next[heap];
		world->next[heap] += 200;
	}
	if (line.stub)
		line.tier = NULL;
	return line;
}

static void append(struct world *world, size_t count, bool scattered)
{
	FILE *file = fopen(world->path, "a");

	cr_assert_not_null(file);
	for (; count; count--) {
		struct line line = invent(world, scattered);

		fprintf(file, "%" PRIx64 " %" PRIx64 " %sline %d%s%s%s\n", line.start,
			line.size_bytes, line.stub ? "stub<1> " : "", world->line_count,
			line.tier ? "[" : "", line.tier ? line.tier : "", line.tier ? "]" : "");
		paint(world, &line);
	}
	fclose(file);
}

static void write_tree(struct world *world)
{
	struct buf maps;

	buf_init(&maps, SIZE_MAX);
	for (size_t i = 0; i < HEAPS; i++)
		buf_printf(&maps, "%" PRIx64 "-%" PRIx64 " %s\n", heaps[i].start,
			   heaps[i].start + HEAP_BYTES, heaps[i].what);
	proc_tree_create(&world->tree);
	proc_tree_add_process(
		&world->tree,
		&(struct proc_tree_process){ .pid = 7, .uid = geteuid(), .maps = maps.data });
	proc_tree_write_text(&world->tree, "/tmp/perf-7.map", "");
	world->path = proc_tree_path(&world->tree, "/tmp/perf-7.map");
	buf_deinit(&maps);
}

static void open_world(struct world *world, size_t lines, bool scattered)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts) };
	size_t cells = (size_t)HEAPS * HEAP_BYTES;

	*world = (struct world){ 0 };
	write_tree(world);
	world->lines = calloc(MOST_LINES, sizeof(*world->lines));
	world->owner = malloc(cells * sizeof(*world->owner));
	world->label = malloc(cells * sizeof(*world->label));
	cr_assert(world->lines && world->owner && world->label);
	memset(world->owner, -1, cells * sizeof(*world->owner));
	memset(world->label, -1, cells * sizeof(*world->label));
	for (size_t i = 0; i < HEAPS; i++)
		world->next[i] = heaps[i].start;
	append(world, lines, scattered);
	opts.root = world->tree.root;
	cr_assert_null(sym_snapshot_open(7, &opts, &world->snapshot));
	cr_assert_null(sym_resolver_create(world->snapshot, &world->resolver));
	cr_assert_null(sym_result_create(&world->result));
}

static void end_world(struct world *world)
{
	sym_result_destroy(world->result);
	sym_resolver_destroy(world->resolver);
	sym_snapshot_close(world->snapshot);
	proc_tree_destroy(&world->tree);
	free(world->path);
	free(world->lines);
	free(world->owner);
	free(world->label);
}

/* ---- what is said, and what is to be said ------------------------------------------------- */

static const struct line *line_at(struct world *world, uint64_t address, int *number_ret)
{
	*number_ret = *cell_of(world->owner, address);
	if (*number_ret < 0)
		*number_ret = *cell_of(world->label, address);
	return *number_ret < 0 ? NULL : &world->lines[*number_ret];
}

static void name_line(char *room, size_t bytes, const struct line *line, int number)
{
	snprintf(room, bytes, "%sline %d", line->stub ? "stub<1> " : "", number);
}

static const char *path_at(uint64_t address)
{
	for (size_t i = 0; i < HEAPS; i++)
		if (address - heaps[i].start < HEAP_BYTES)
			return heaps[i].path;
	return NULL;
}

static void check(struct world *world, const struct sym_answer *answer, uint64_t address)
{
	char name[64];
	int number;
	const struct line *line = line_at(world, address, &number);

	cr_assert_eq(answer->address, address);
	cr_assert_str_eq(answer->image_path, path_at(address));
	if (!line) {
		cr_assert_eq(answer->status, SYM_NO_MATCH, "%" PRIx64 " %s", address, answer->name);
		cr_assert_null(answer->name);
		return;
	}
	name_line(name, sizeof(name), line, number);
	cr_assert_eq(answer->status, SYM_RESOLVED, "%" PRIx64 ": %s", address, name);
	cr_assert_str_eq(answer->name, name, "at %" PRIx64, address);
	cr_assert_str_eq(answer->tier ? answer->tier : "", line->tier ? line->tier : "");
	cr_assert_eq(answer->offset_bytes, address - line->start);
	cr_assert_eq(answer->size_bytes, line->size_bytes);
	cr_assert_eq(answer->kind, line->stub ? SYM_SYMBOL_STUB : SYM_SYMBOL_FUNCTION);
	cr_assert_eq(answer->source, SYM_SOURCE_PERF_MAP);
}

/* Anywhere, and at the ends of the last line. */
static uint64_t question(const struct world *world, size_t number)
{
	const struct line *line;
	uint64_t address;

	if (number % 2 || !world->line_count)
		return heaps[(size_t)random() % HEAPS].start + (uint64_t)(random() % HEAP_BYTES);
	line = &world->lines[world->line_count - 1 - random() % world->line_count % 300];
	address = line->start + (number % 4 ? 0 : line->size_bytes) - (uint64_t)(number % 3 == 0);
	return path_at(address) ? address : line->start;
}

static void check_all(struct world *world)
{
	uint64_t addresses[QUESTIONS];

	for (size_t i = 0; i < QUESTIONS; i++)
		addresses[i] = question(world, i);
	for (size_t i = 0; i < QUESTIONS; i++) {
		cr_assert_null(
			sym_resolver_resolve(world->resolver, &addresses[i], 1, world->result));
		check(world, sym_result_at(world->result, 0), addresses[i]);
	}
	cr_assert_null(sym_resolver_resolve(world->resolver, addresses, QUESTIONS, world->result));
	for (size_t i = 0; i < QUESTIONS; i++)
		check(world, sym_result_at(world->result, i), addresses[i]);
}

static void grow(struct world *world, size_t steps, size_t lines, bool scattered)
{
	for (size_t step = 0; step < steps; step++) {
		enum sym_refresh found;

		append(world, step % 10 == 9 ? 20 * lines : lines, scattered);
		cr_assert_null(sym_resolver_refresh(world->resolver, &found));
		cr_assert_eq(found, SYM_REFRESH_EXTENDED);
		check_all(world);
	}
}

/* ---- tests --------------------------------------------------------------------------------- */

Test(resolver_growing_map, agrees_with_a_painted_model_of_adjacent_methods)
{
	struct world world;

	srandom(1);
	open_world(&world, 600, false);
	check_all(&world);
	grow(&world, 40, 30, false);
	end_world(&world);
}

Test(resolver_growing_map, agrees_with_a_painted_model_of_overlapping_methods)
{
	struct world world;

	srandom(2);
	open_world(&world, 3000, true);
	check_all(&world);
	grow(&world, 60, 40, true);
	end_world(&world);
}

Test(resolver_growing_map, begins_with_a_map_without_a_line)
{
	struct world world;

	srandom(3);
	open_world(&world, 0, true);
	check_all(&world);
	grow(&world, 30, 1, true);
	grow(&world, 30, 7, false);
	end_world(&world);
}

Test(resolver_growing_map, may_be_used_first_after_a_refresh)
{
	struct world world;

	srandom(4);
	open_world(&world, 100, false);
	append(&world, 50, false);
	cr_assert_null(sym_resolver_refresh(world.resolver, NULL));
	append(&world, 50, false);
	cr_assert_null(sym_resolver_refresh(world.resolver, NULL));
	check_all(&world);
	grow(&world, 3, 50, true);
	end_world(&world);
}

Test(resolver_growing_map, follows_a_map_that_is_replaced)
{
	struct world world;
	size_t cells = (size_t)HEAPS * HEAP_BYTES;

	srandom(5);
	open_world(&world, 500, false);
	check_all(&world);
	grow(&world, 3, 50, true);
	/* Another file, of which nothing was read. */
	cr_assert_eq(unlink(world.path), 0);
	memset(world.owner, -1, cells * sizeof(*world.owner));
	memset(world.label, -1, cells * sizeof(*world.label));
	append(&world, 700, true);
	cr_assert_null(sym_resolver_refresh(world.resolver, NULL));
	check_all(&world);
	grow(&world, 12, 20, false);
	end_world(&world);
}

Test(resolver_growing_map, allocates_nothing_when_hot)
{
	struct world world;

	srandom(6);
	open_world(&world, 500, false);
	check_all(&world);
	grow(&world, 5, 50, true);
	check_all(&world);
	alloc_fail_after(0);
	check_all(&world);
	cr_expect_not(alloc_fail_stop());
	end_world(&world);
}

Test(resolver_growing_map, survives_failing_allocations)
{
	struct world world;

	srandom(7);
	open_world(&world, 300, true);
	check_all(&world);
	for (unsigned int i = 0; i < 40; i++) {
		append(&world, 20, true);
		cr_assert_null(sym_resolver_refresh(world.resolver, NULL));
		alloc_fail_after(i);
		check_all(&world);
		alloc_fail_stop();
	}
	end_world(&world);
}
