/* SPDX-License-Identifier: MIT */
/*
 * Look-ups of jitted code in batches, compared with the lines that the test wrote into the map. The
 * neighbours in a batch, and the previous content of the result, must not matter.
 */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libsym/base/buf.h"
#include "libsym/libsym.h"
#include "tests/support/alloc_fail.h"
#include "tests/support/proc_tree.h"

enum {
	HEAPS = 700,      /* more than the table has slots */
	METHODS = 30,     /* of each heap */
	BATCH = 1000 + 7, /* several groups, the last one partial */
	STEP_BYTES = 0x100
};

static const uint64_t first_heap = 0x7f1000000000, heap_step = 0x40000, heap_bytes = 0x10000;

struct world {
	struct proc_tree tree;
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;
};

/* The expected answer to an address. */
struct expected {
	uint64_t address;
	enum sym_status status;
	char name[32]; /* "" for none */
	const char *tier;
	uint64_t offset_bytes, size_bytes;
	const char *path;
	enum sym_symbol_kind kind;
};

static uint64_t start_of(size_t heap, size_t method)
{
	return first_heap + heap * heap_step + 0x1000 + method * STEP_BYTES;
}

/* Every third heap is anonymous. Two with one path are adjacent. */
static const char *path_of(size_t heap)
{
	return heap % 3 ? "/memfd:doublemapper" : "";
}

static void write_maps(struct buf *maps)
{
	for (size_t heap = 0; heap < HEAPS; heap++) {
		uint64_t start = first_heap + heap * heap_step;
		const char *what = heap % 3 ? "r-xs 00000000 00:01 9 /memfd:doublemapper (deleted)"
					    : "rwxp 00000000 00:00 0 ";

		/* In two lines, followed by lines without execute permission. */
		buf_printf(maps, "%" PRIx64 "-%" PRIx64 " %s\n", start, start + heap_bytes / 2,
			   what);
		buf_printf(maps, "%" PRIx64 "-%" PRIx64 " %s\n", start + heap_bytes / 2,
			   start + heap_bytes, what);
		buf_printf(maps, "%" PRIx64 "-%" PRIx64 " rw-p 00000000 00:00 0 \n",
			   start + heap_bytes, start + heap_bytes + 0x1000);
	}
}

static void write_map(struct buf *map)
{
	for (size_t heap = 0; heap < HEAPS; heap++) {
		for (size_t method = 0; method < METHODS; method++)
			if (method % 7 == 3)
				buf_printf(map, "%" PRIx64 " 40 stub<%zu> h%zum%zu\n",
					   start_of(heap, method), method, heap, method);
			else
				buf_printf(map, "%" PRIx64 " 40 h%zum%zu%s\n",
					   start_of(heap, method), heap, method,
					   method % 2 ? "[QuickJitted]" : "");
		/* Where no memory is executable, and where none is mapped. */
		buf_printf(map, "%" PRIx64 " 40 data\n",
			   first_heap + heap * heap_step + heap_bytes);
		buf_printf(map, "%" PRIx64 " 40 nowhere\n",
			   first_heap + heap * heap_step + heap_bytes + 0x2000);
	}
}

static void open_world(struct world *world, const char *more)
{
	struct sym_snapshot_opts opts = { .size = sizeof(opts) };
	struct buf maps, map;

	buf_init(&maps, SIZE_MAX);
	buf_init(&map, SIZE_MAX);
	write_maps(&maps);
	write_map(&map);
	buf_printf(&map, "%s", more);
	proc_tree_create(&world->tree);
	proc_tree_add_process(
		&world->tree,
		&(struct proc_tree_process){ .pid = 7, .uid = geteuid(), .maps = maps.data });
	proc_tree_write_text(&world->tree, "/tmp/perf-7.map", map.data);
	opts.root = world->tree.root;
	cr_assert_null(sym_snapshot_open(7, &opts, &world->snapshot));
	cr_assert_null(sym_resolver_create(world->snapshot, &world->resolver));
	cr_assert_null(sym_result_create(&world->result));
	buf_deinit(&maps);
	buf_deinit(&map);
}

static void end_world(struct world *world)
{
	sym_result_destroy(world->result);
	sym_resolver_destroy(world->resolver);
	sym_snapshot_close(world->snapshot);
	proc_tree_destroy(&world->tree);
}

static void resolve(struct world *world, const uint64_t *addresses, size_t count)
{
	cr_assert_null(sym_resolver_resolve(world->resolver, addresses, count, world->result));
	cr_assert_eq(sym_result_count(world->result), count);
}

/* The first addresses use the general way, one for each kind of memory. */
static void warm_up(struct world *world)
{
	for (size_t heap = 0; heap < 2; heap++)
		for (size_t i = 0; i < 2; i++) {
			uint64_t address = start_of(heap, 0);

			resolve(world, &address, 1);
		}
}

static struct expected expect(size_t number)
{
	size_t heap = number * 7 % HEAPS, method = number % METHODS;
	uint64_t offset_bytes = number % 0x40, heap_start = first_heap + heap * heap_step;
	struct expected expected = { .address = start_of(heap, method) + offset_bytes,
				     .status = SYM_RESOLVED,
				     .offset_bytes = offset_bytes,
				     .size_bytes = 0x40,
				     .path = path_of(heap) };

	switch (number % 11) {
	case 4: /* between two lines */
		expected.address += 0x40;
		expected.status = SYM_NO_MATCH;
		return expected;
	case 7:
		expected.address = heap_start + heap_bytes + offset_bytes;
		snprintf(expected.name, sizeof(expected.name), "data");
		expected.path = "";
		return expected;
	case 9:
		expected.address = heap_start + heap_bytes + 0x2000 + offset_bytes;
		expected.status = SYM_UNMAPPED;
		expected.path = "";
		return expected;
	default:
		break;
	}
	if (method % 7 == 3) {
		expected.kind = SYM_SYMBOL_STUB;
		snprintf(expected.name, sizeof(expected.name), "stub<%zu> h%zum%zu", method, heap,
			 method);
	} else {
		snprintf(expected.name, sizeof(expected.name), "h%zum%zu", heap, method);
		expected.tier = method % 2 ? "QuickJitted" : NULL;
	}
	return expected;
}

static void check(const struct sym_answer *answer, const struct expected *expected)
{
	bool named = expected->name[0] != '\0';

	cr_assert_eq(answer->address, expected->address);
	cr_assert_eq(answer->status, expected->status, "%" PRIx64 ": %s", answer->address,
		     answer->reason ? answer->reason : "");
	cr_assert_eq(answer->source, named ? SYM_SOURCE_PERF_MAP : SYM_SOURCE_NONE);
	cr_assert_str_eq(answer->name ? answer->name : "", expected->name);
	cr_assert_str_eq(answer->tier ? answer->tier : "", expected->tier ? expected->tier : "");
	cr_assert_eq(answer->offset_bytes, named ? expected->offset_bytes : 0);
	cr_assert_eq(answer->size_bytes, named ? expected->size_bytes : 0);
	cr_assert_str_eq(answer->image_path, expected->path);
	cr_assert_eq(answer->kind, expected->kind);
	cr_assert_null(answer->image);
	cr_assert_eq(answer->image_position, UINT64_MAX);
	cr_assert_null(answer->reason);
	cr_assert_null(answer->linkage_name);
	cr_assert_null(answer->file);
	cr_assert_eq(answer->line, 0);
	cr_assert_eq(answer->column, 0);
	cr_assert_null(answer->inlined);
	cr_assert_eq(answer->inlined_count, 0);
	cr_assert_null(answer->component);
	cr_assert_null(answer->component_mvid);
}

/* Checks answers from `first` on. */
static void check_batch(struct world *world, size_t first, size_t count)
{
	uint64_t addresses[BATCH] = { 0 };

	for (size_t i = 0; i < count; i++)
		addresses[i] = expect(first + i).address;
	resolve(world, addresses, count);
	for (size_t i = 0; i < count; i++) {
		struct expected expected = expect(first + i);

		check(sym_result_at(world->result, i), &expected);
	}
}

Test(resolver_batches, answers_a_batch_of_everything_in_the_order_asked)
{
	struct world world;

	open_world(&world, "");
	check_batch(&world, 0, BATCH);
	/* Each time with other answers in the same places. */
	for (size_t first = 0; first < 24; first++)
		check_batch(&world, first, BATCH);
	for (size_t count = 0; count < 70; count++)
		check_batch(&world, count, count);
	end_world(&world);
}

Test(resolver_batches, answers_one_address_like_many)
{
	struct world world;

	open_world(&world, "");
	warm_up(&world);
	for (size_t i = 0; i < BATCH; i++)
		check_batch(&world, i, 1);
	end_world(&world);
}

Test(resolver_batches, names_code_of_overlapping_and_sizeless_lines)
{
	/*
	 * In the first heap, after its methods: one of 128 KiB, partly in the heap; one that
	 * another one cuts in two; one without a size.
	 */
	static const char more[] = "7f1000008000 20000 large\n7f1000004000 100 cut\n"
				   "7f1000004040 40 cutter\n7f1000005000 0 point\n";
	static const struct {
		uint64_t address;
		const char *name;
		uint64_t offset_bytes, size_bytes;
	} rows[] = {
		{ 0x7f1000008000, "large", 0, 0x20000 },
		{ 0x7f100000ffff, "large", 0x7fff, 0x20000 },
		{ 0x7f100000403f, "cut", 0x3f, 0x100 },
		{ 0x7f1000004040, "cutter", 0, 0x40 },
		{ 0x7f1000004080, "cut", 0x80, 0x100 },
		{ 0x7f1000005000, "point", 0, 0 },
		{ 0x7f1000005001, NULL, 0, 0 },
		{ 0x7f1000004100, NULL, 0, 0 },
	};
	struct world world;

	open_world(&world, more);
	warm_up(&world);
	for (size_t round = 0; round < 2; round++)
		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
			const struct sym_answer *answer;

			resolve(&world, &rows[i].address, 1);
			answer = sym_result_at(world.result, 0);
			cr_assert_eq(answer->status, rows[i].name ? SYM_RESOLVED : SYM_NO_MATCH);
			cr_assert_str_eq(answer->name ? answer->name : "",
					 rows[i].name ? rows[i].name : "");
			cr_assert_eq(answer->offset_bytes, rows[i].offset_bytes);
			cr_assert_eq(answer->size_bytes, rows[i].size_bytes);
		}
	end_world(&world);
}

Test(resolver_batches, allocates_nothing_when_hot)
{
	struct world world;

	open_world(&world, "");
	check_batch(&world, 0, BATCH);
	check_batch(&world, 0, BATCH);
	alloc_fail_after(0);
	check_batch(&world, 0, BATCH);
	check_batch(&world, 5, 1);
	cr_expect_not(alloc_fail_stop());
	end_world(&world);
}

static void resolve_if_there_is_memory(struct world *world)
{
	uint64_t address = start_of(3, 5);
	struct sym_error *error = sym_resolver_resolve(world->resolver, &address, 1, world->result);

	if (!error && sym_result_at(world->result, 0)->status == SYM_RESOLVED)
		cr_assert_str_eq(sym_result_at(world->result, 0)->name, "h3m5");
	sym_error_destroy(error);
}

Test(resolver_batches, answers_again_after_a_lack_of_memory)
{
	struct world world;

	open_world(&world, "");
	for (unsigned int i = 0; i < 60; i++) {
		alloc_fail_after(i);
		resolve_if_there_is_memory(&world);
		alloc_fail_stop();
	}
	check_batch(&world, 0, BATCH);
	end_world(&world);
}
