/* SPDX-License-Identifier: MIT */
/*
 * When a live process is refreshed, by a clock that the test sets. The process is this test. Its
 * perf map gets lines for memory that it has mapped.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/libsym.h"
#include "tests/support/own_perf_map.h"

static const uint64_t ms_ns = 1000000;

enum {
	CODE_BYTES = 0x4000,
	STEP_BYTES = 0x100
};

static struct world {
	struct own_perf_map map;
	uint64_t code;
	uint64_t now_ns;
	uint64_t tick_ns; /* added at each reading of the clock */
	struct sym_live *live;
	struct sym_result *result;
} world;

static uint64_t read_clock(void *context)
{
	(void)context;
	return world.now_ns += world.tick_ns;
}

static struct sym_live *open_live(pid_t pid, struct sym_live_opts opts)
{
	const struct sym_snapshot_opts snapshot = { .size = sizeof(snapshot),
						    .jit = SYM_JIT_PERF_MAP };
	struct sym_live *live = NULL;
	struct sym_error *error;

	opts.size = sizeof(opts);
	opts.snapshot = &snapshot;
	opts.clock_ns = read_clock;
	error = sym_live_open(pid, &opts, &live);
	cr_assert_null(error, "%s", sym_error_message(error));
	return live;
}

static void write_line(unsigned int number, const char *name)
{
	fprintf(world.map.file, "%" PRIx64 " %x %s\n", world.code + (uint64_t)number * STEP_BYTES,
		STEP_BYTES, name);
	fflush(world.map.file);
}

static void start_with(struct sym_live_opts opts)
{
	void *code =
		mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert_neq(code, MAP_FAILED);
	world.code = (uintptr_t)code;
	world.map = own_perf_map_create();
	world.now_ns = 1000 * ms_ns;
	write_line(0, "first");
	cr_assert_null(sym_result_create(&world.result));
	world.live = open_live(getpid(), opts);
}

static void start(void)
{
	start_with((struct sym_live_opts){ 0 });
}

static void finish(void)
{
	sym_result_destroy(world.result);
	sym_live_close(world.live);
	fclose(world.map.file);
	unlink(world.map.path);
}

static const char *name_at(unsigned int number)
{
	uint64_t address = world.code + (uint64_t)number * STEP_BYTES;
	const struct sym_answer *answer;

	cr_assert_null(sym_live_resolve(world.live, &address, NULL, 1, world.result));
	answer = sym_result_at(world.result, 0);
	return answer->status == SYM_RESOLVED ? answer->name : "";
}

static void pass_ms(uint64_t ms)
{
	world.now_ns += ms * ms_ns;
}

Test(live, renames_code_when_the_interval_has_passed)
{
	start();
	cr_expect_str_eq(name_at(0), "first");
	write_line(0, "second");
	pass_ms(49);
	cr_expect_str_eq(name_at(0), "first");
	pass_ms(1);
	cr_expect_str_eq(name_at(0), "second");
	finish();
}

Test(live, takes_its_interval_from_the_caller)
{
	start_with((struct sym_live_opts){ .interval_ms = 300 });
	cr_expect_str_eq(name_at(0), "first");
	write_line(0, "second");
	pass_ms(299);
	cr_expect_str_eq(name_at(0), "first");
	pass_ms(1);
	cr_expect_str_eq(name_at(0), "second");
	finish();
}

Test(live, refreshes_at_once_for_a_missing_name_while_new_ones_come)
{
	start();
	cr_expect_str_eq(name_at(0), "first");
	write_line(1, "one");
	cr_expect_str_eq(name_at(1), "", "the first refresh has to wait");
	pass_ms(50);
	cr_expect_str_eq(name_at(1), "one");
	write_line(2, "two");
	cr_expect_str_eq(name_at(2), "two", "the refresh before has found something");
	cr_expect_str_eq(name_at(3), "");
	write_line(3, "three");
	cr_expect_str_eq(name_at(3), "", "the refresh before has found nothing");
	pass_ms(50);
	cr_expect_str_eq(name_at(3), "three");
	finish();
}

/* A reading of everything, which has taken `cost_ms`, is not repeated at once. */
static void expect_rest(bool is_past, uint64_t cost_ms, uint64_t rest_ms)
{
	const struct sym_jit_info *info;
	uint64_t begin_ns;

	start();
	sym_live_set_past(world.live, is_past);
	world.tick_ns = cost_ms * ms_ns;
	begin_ns = world.now_ns + world.tick_ns;
	/* Addresses from the past are looked up by programs that ask about the runtime first. */
	if (is_past)
		cr_assert_null(sym_live_jit(world.live, &info));
	else
		cr_expect_str_eq(name_at(0), "first");
	world.tick_ns = 0;
	cr_expect_str_eq(name_at(0), "first");
	write_line(1, "one");
	world.now_ns = begin_ns + (rest_ms - 10) * ms_ns;
	cr_expect_str_eq(name_at(1), "", "the first refresh came too early");
	pass_ms(20);
	cr_expect_str_eq(name_at(1), "one", "past %d, cost %d ms", is_past, (int)cost_ms);
	finish();
}

Test(live, rests_before_the_first_refresh_by_the_cost_of_the_first_look_up)
{
	expect_rest(false, 100, 400);
	expect_rest(true, 100, 400);
	expect_rest(false, 400, 1000);
	expect_rest(true, 400, 1000);
}

/*
 * The share of the time spent on refreshes while code was renamed again and again. Each refresh
 * takes one tick of the clock.
 */
static void expect_share(uint32_t share_percent, uint64_t expected_percent)
{
	unsigned int refreshes = 0;
	uint64_t passed_ns, spent_ns, allowed_ns;
	char name[32];

	start_with((struct sym_live_opts){ .share_percent = share_percent });
	name_at(0);
	pass_ms(1000);
	name_at(0);
	passed_ns = world.now_ns;
	world.tick_ns = 100 * ms_ns;
	for (unsigned int i = 0; i < 400; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		write_line(0, name);
		refreshes += !strcmp(name_at(0), name);
	}
	passed_ns = world.now_ns - passed_ns;
	spent_ns = refreshes * world.tick_ns;
	/* The limiter adds the saved time and the last refresh. */
	allowed_ns = passed_ns * expected_percent / 100 + 1100 * ms_ns;
	cr_expect_leq(spent_ns, allowed_ns, "%" PRIu64 " ms of %" PRIu64, spent_ns / ms_ns,
		      passed_ns / ms_ns);
	cr_expect_geq(spent_ns, allowed_ns / 2, "%" PRIu64 " ms of %" PRIu64, spent_ns / ms_ns,
		      passed_ns / ms_ns);
	world.tick_ns = 0;
	finish();
}

Test(live, spends_no_more_than_its_share_of_the_time)
{
	expect_share(0, 25);
	expect_share(5, 5);
}

Test(live, saves_what_it_does_not_spend)
{
	char name[32];

	start();
	name_at(0);
	pass_ms(1000);
	name_at(0);
	world.tick_ns = 400 * ms_ns;
	for (unsigned int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		write_line(0, name);
		pass_ms(10000);
		cr_expect_str_eq(name_at(0), name);
	}
	world.tick_ns = 0;
	finish();
}

Test(live, shares_a_budget)
{
	struct sym_live_budget budget = { .saved_ns = -10000 * (int64_t)ms_ns,
					  .counted_ns = 1000 * ms_ns };

	start_with((struct sym_live_opts){ .budget = &budget });
	name_at(0);
	write_line(0, "second");
	pass_ms(1000);
	cr_expect_str_eq(name_at(0), "first", "another one has spent it");
	budget.saved_ns = 0;
	pass_ms(1000);
	cr_expect_str_eq(name_at(0), "second");
	finish();
}

Test(live, does_not_refresh_named_code_of_the_past)
{
	start();
	sym_live_set_past(world.live, 1);
	cr_expect_str_eq(name_at(0), "first");
	write_line(0, "second");
	pass_ms(1000);
	cr_expect_str_eq(name_at(0), "first");
	write_line(1, "one");
	cr_expect_str_eq(name_at(1), "one", "a name was missing");
	finish();
}

Test(live, never_refreshes_a_recorded_process)
{
	const struct sym_snapshot_opts snapshot = { .size = sizeof(snapshot),
						    .root = "fixtures/recorded" };
	const struct sym_live_opts opts = { .size = sizeof(opts), .snapshot = &snapshot };
	struct sym_live *live = NULL;

	cr_assert_null(sym_live_open(5624, &opts, &live));
	cr_expect_eq(sym_live_update(live, 0), 0);
	cr_expect_eq(sym_live_update(live, 1), 0);
	cr_expect_eq(sym_live_next_ms(live), -1);
	sym_live_close(live);
}

Test(live, requires_the_size_of_its_options)
{
	const struct sym_live_opts opts = { 0 };
	struct sym_live *live = NULL;
	struct sym_error *error = sym_live_open(getpid(), &opts, &live);

	cr_assert_not_null(error);
	cr_expect_eq(sym_error_code(error), SYM_ERROR_ARGUMENT);
	sym_error_destroy(error);
	sym_live_close(NULL);
}

/* ---- exec() ---------------------------------------------------------------------------------- */

/* A child that calls exec() on command. A pipe reports when exec() has closed it. */
struct child {
	pid_t pid;
	int order, done;
};

static void start_child(struct child *child)
{
	int order[2], done[2], input[2];

	cr_assert(!pipe2(order, O_CLOEXEC) && !pipe2(done, O_CLOEXEC) && !pipe2(input, 0));
	child->pid = fork();
	if (!child->pid) {
		char byte;

		dup2(input[0], STDIN_FILENO);
		if (read(order[0], &byte, 1) == 1)
			execl("/bin/cat", "cat", (char *)NULL);
		_exit(1);
	}
	close(order[0]);
	close(done[1]);
	close(input[0]);
	child->order = order[1];
	child->done = done[0];
}

static void call_exec(const struct child *child)
{
	char byte = 0;

	cr_assert_eq(write(child->order, &byte, 1), 1);
	cr_assert_eq(read(child->done, &byte, 1), 0);
}

/* Where a program's code is mapped; 0: not mapped. */
static uint64_t code_of(pid_t pid, const char *program)
{
	char path[64], line[512], permissions[8], name[256];
	uint64_t start, found = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	while (maps && !found && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNx64 "-%*x %7s %*s %*s %*s %255s", &start, permissions,
			   name) == 3 &&
		    permissions[2] == 'x' && strstr(name, program))
			found = start;
	if (maps)
		fclose(maps);
	return found;
}

/* The snapshot before is closed by the second change, so borrowers must notice the first. */
Test(live, counts_replaced_snapshots)
{
	uint64_t generation;
	void *more;

	start();
	cr_expect_str_eq(name_at(0), "first");
	pass_ms(1000);
	cr_expect_str_eq(name_at(0), "first");
	generation = sym_live_generation(world.live);
	for (int i = 1; i <= 3; i++) {
		const struct sym_snapshot *before = sym_live_snapshot(world.live);

		more = mmap(NULL, CODE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			    -1, 0);
		cr_assert_neq(more, MAP_FAILED);
		cr_assert_eq(mprotect(more, CODE_BYTES / 2, PROT_READ), 0);
		pass_ms(1000);
		cr_expect_str_eq(name_at(0), "first");
		cr_assert_neq(sym_live_snapshot(world.live), before);
		cr_expect_gt(sym_live_generation(world.live), generation);
		generation = sym_live_generation(world.live);
	}
	finish();
}

Test(live, follows_exec)
{
	struct sym_result *result = NULL;
	uint64_t before, address;
	struct sym_live *live;
	struct child child;

	start_child(&child);
	world.now_ns = 1000 * ms_ns;
	before = code_of(child.pid, "unit");
	cr_assert(before);
	cr_assert_null(sym_result_create(&result));
	live = open_live(child.pid, (struct sym_live_opts){ .flags = SYM_LIVE_SAME_PROCESS });
	cr_assert_null(sym_live_resolve(live, &before, NULL, 1, result));
	cr_expect_not_null(strstr(sym_result_at(result, 0)->image_path, "unit"));
	call_exec(&child);
	address = code_of(child.pid, "cat");
	cr_assert(address);
	pass_ms(100);
	cr_assert_null(sym_live_resolve(live, &address, NULL, 1, result));
	cr_expect_not_null(strstr(sym_result_at(result, 0)->image_path, "cat"));
	cr_expect_eq(sym_live_generation(live), 1);
	kill(child.pid, SIGKILL);
	waitpid(child.pid, NULL, 0);
	/* Its known names stay. */
	pass_ms(5000);
	cr_assert_null(sym_live_resolve(live, &address, NULL, 1, result));
	cr_expect_not_null(strstr(sym_result_at(result, 0)->image_path, "cat"));
	sym_result_destroy(result);
	sym_live_close(live);
	close(child.order);
	close(child.done);
}
