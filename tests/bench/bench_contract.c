/* SPDX-License-Identifier: MIT */
/*
 * bench_contract PID [ROUNDS]: compares reading the jitted methods of a process by data contract
 * with the same process_vm_readv() calls alone, in alternation. Prints medians and minima of CPU
 * time. Without a PID it does nothing; contract_figures.py starts the process.
 *
 * "cpu" repeats in one process, where both use memory that was used before. "first" runs each in a
 * process of its own, like a command: both use fresh memory. Then it measures the debug information
 * of all methods in the same way.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsym/clr/jit_debug.h"
#include "libsym/clr/jit_reader.h"
#include "libsym/libsym.h"
#include "tests/bench/bench.h"

enum {
	DEFAULT_ROUNDS = 31,
	FIRST_ROUNDS = 11,
	MAX_ROUNDS = 10000,
	MAX_CALLS = 4096,
};

/* The calls of one reading, for repetition. */
static struct call {
	struct iovec rooms[REMOTE_MAX_PIECES];
	struct iovec pieces[REMOTE_MAX_PIECES];
	size_t count;
} * calls;
static size_t call_count;
static bool is_noting = true;
static pid_t pid;

/* Memory shared between the processes. */
static struct {
	double ms;
	size_t call_count, methods;
	bool is_good;
} * shared;

static double cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return 1000.0 * (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000.0;
}

static ssize_t read_and_note(void *context, const struct iovec *rooms, const struct iovec *pieces,
			     size_t count)
{
	ssize_t bytes = process_vm_readv(pid, rooms, count, pieces, count, 0);

	(void)context;
	if (is_noting && call_count < MAX_CALLS) {
		struct call *call = &calls[call_count++];

		memcpy(call->pieces, pieces, count * sizeof(*pieces));
		call->count = count;
	}
	return bytes < 0 ? -errno : bytes;
}

static struct sym_error *no_words(void *context, int errno_value)
{
	(void)context;
	return sym_error_create(SYM_ERROR_IO, "%s", strerror(errno_value));
}

/* One complete reading, including opening; *ms_ret excludes everything but reading. */
static struct sym_error *read_all(uint64_t base, double *ms_ret, size_t *methods_ret)
{
	static const struct remote_memory_ops ops = { .read = read_and_note, .error = no_words };
	struct remote_memory *memory = NULL;
	struct jit_reader *reader = NULL;
	struct jit_reading *reading = NULL;
	double begin = cpu_ms();
	struct sym_error *error = remote_memory_create(&ops, NULL, &memory);

	if (!error)
		error = jit_reader_open(memory, base, &reader);
	if (!error)
		error = jit_reader_read(reader, 0, &reading);
	*ms_ret = cpu_ms() - begin;
	if (!error)
		*methods_ret = reading->method_count;
	jit_reading_destroy(reading);
	jit_reader_close(reader);
	return error;
}

/* Repeats the calls, each into its own memory, as in the reading. */
static double repeat_calls(void)
{
	double begin, ms;
	size_t total = 0, at = 0;
	char *room;

	for (size_t i = 0; i < call_count; i++)
		for (size_t j = 0; j < calls[i].count; j++)
			total += calls[i].pieces[j].iov_len;
	begin = cpu_ms();
	room = malloc(total);
	for (size_t i = 0; room && i < call_count; i++) {
		for (size_t j = 0; j < calls[i].count; j++) {
			calls[i].rooms[j] = (struct iovec){ room + at, calls[i].pieces[j].iov_len };
			at += calls[i].pieces[j].iov_len;
		}
		if (process_vm_readv(pid, calls[i].rooms, calls[i].count, calls[i].pieces,
				     calls[i].count, 0) < 0)
			continue;
	}
	ms = cpu_ms() - begin;
	free(room);
	return ms;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

static void read_first(uint64_t base)
{
	struct sym_error *error = read_all(base, &shared->ms, &shared->methods);

	shared->call_count = call_count;
	shared->is_good = !error;
	sym_error_destroy(error);
}

static void repeat_first(uint64_t base)
{
	(void)base;
	call_count = shared->call_count;
	shared->ms = repeat_calls();
	shared->is_good = true;
}

/* Milliseconds of `what` in a process of its own; negative if it failed. */
static double in_new_process(void (*what)(uint64_t base), uint64_t base)
{
	pid_t child;

	shared->is_good = false;
	child = fork();
	if (!child) {
		what(base);
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child || !shared->is_good)
		return -1;
	return shared->ms;
}

/* Before this process has read anything. */
static bool measure_first(uint64_t base)
{
	double ours[FIRST_ROUNDS], peer[FIRST_ROUNDS], ratio;

	for (int i = 0; i < FIRST_ROUNDS; i++) {
		ours[i] = in_new_process(read_first, base);
		peer[i] = ours[i] < 0 ? -1 : in_new_process(repeat_first, base);
		if (peer[i] < 0)
			return false;
	}
	qsort(ours, FIRST_ROUNDS, sizeof(ours[0]), compare);
	qsort(peer, FIRST_ROUNDS, sizeof(peer[0]), compare);
	ratio = ours[FIRST_ROUNDS / 2] / peer[FIRST_ROUNDS / 2];
	printf("contract/%zu-methods/first ours=%.1fms peer=%.1fms ratio=%.2f goal=2.00 %s\n",
	       shared->methods, ours[FIRST_ROUNDS / 2], peer[FIRST_ROUNDS / 2], ratio,
	       ratio <= 2 ? "ok" : "short");
	return !fflush(stdout);
}

static void *share(size_t size_bytes)
{
	void *memory = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static uint64_t runtime_base(void)
{
	struct sym_snapshot *snapshot = NULL;
	struct sym_error *error = sym_snapshot_open(pid, NULL, &snapshot);
	uint64_t base = 0;

	if (!error && sym_snapshot_process(snapshot)->runtime_image_index != UINT32_MAX)
		base = sym_image_load_base(sym_snapshot_image_at(
			snapshot, sym_snapshot_process(snapshot)->runtime_image_index));
	sym_error_destroy(error);
	sym_snapshot_close(snapshot);
	return base;
}

/* ---- debug information ---------------------------------------------------------------- */

enum {
	DEBUG_ROUNDS = 11
};

static const struct remote_memory_ops noting_ops = { .read = read_and_note, .error = no_words };

/* The methods of the process, as questions; heap. NULL when there are none. */
static struct jit_debug_body *list_bodies(uint64_t base, size_t *count_ret)
{
	struct remote_memory *memory = NULL;
	struct jit_reader *reader = NULL;
	struct jit_reading *reading = NULL;
	struct jit_debug_body *bodies = NULL;
	struct sym_error *error = remote_memory_create(&noting_ops, NULL, &memory);

	if (!error)
		error = jit_reader_open(memory, base, &reader);
	if (!error)
		error = jit_reader_read(reader, 0, &reading);
	*count_ret = error ? 0 : reading->symbol_count;
	if (*count_ret)
		bodies = calloc(*count_ret, sizeof(*bodies));
	for (size_t i = 0; bodies && i < *count_ret; i++)
		bodies[i] = (struct jit_debug_body){
			.start_address = reading->symbols[i].start_address,
			.size_bytes = reading->symbols[i].size_bytes,
		};
	sym_error_destroy(error);
	jit_reading_destroy(reading);
	jit_reader_close(reader);
	return bodies;
}

static void count_entries(void *context, struct jit_debug_body *body, const struct debug_info *info)
{
	struct il_map map = il_map_begin(info->bounds, info->bounds_bytes, info->form);
	struct il_map_entry entry;

	(void)body;
	while (il_map_next(&map, &entry))
		++*(size_t *)context;
}

/* *open_calls_ret: how many calls read the data contract, before a method was asked for. */
static struct sym_error *read_debug(uint64_t base, const struct jit_debug_body *questions,
				    size_t count, double *ms_ret, size_t *entries_ret,
				    size_t *open_calls_ret)
{
	struct jit_debug_body *bodies = malloc(count * sizeof(*bodies));
	struct remote_memory *memory = NULL;
	struct jit_debug *debug = NULL;
	struct sym_error *error = remote_memory_create(&noting_ops, NULL, &memory);
	double begin;

	memcpy(bodies, questions, count * sizeof(*bodies));
	if (!error)
		error = jit_debug_open(memory, base, &debug);
	*open_calls_ret = call_count;
	call_count = is_noting ? 0 : call_count;
	*entries_ret = 0;
	begin = cpu_ms();
	if (!error)
		error = jit_debug_read(debug, bodies, count, count_entries, entries_ret);
	*ms_ret = cpu_ms() - begin;
	jit_debug_close(debug);
	free(bodies);
	return error;
}

static struct sym_error *measure_debug(uint64_t base)
{
	double ours[DEBUG_ROUNDS], peer[DEBUG_ROUNDS], ratio;
	size_t count, entries = 0, open_calls = 0;
	struct jit_debug_body *bodies = list_bodies(base, &count);
	struct sym_error *error = NULL;

	call_count = 0;
	if (bodies)
		error = read_debug(base, bodies, count, &ours[0], &entries, &open_calls);
	/* The process is stopped: the calls are the same each time. */
	is_noting = false;
	for (int i = 0; bodies && !error && i < DEBUG_ROUNDS; i++) {
		size_t no_calls;

		error = read_debug(base, bodies, count, &ours[i], &entries, &no_calls);
		peer[i] = error ? 0 : repeat_calls();
	}
	free(bodies);
	if (error || !bodies)
		return error;
	qsort(ours, DEBUG_ROUNDS, sizeof(ours[0]), compare);
	qsort(peer, DEBUG_ROUNDS, sizeof(peer[0]), compare);
	ratio = ours[DEBUG_ROUNDS / 2] / peer[DEBUG_ROUNDS / 2];
	printf("debug_information/%zu-methods entries=%zu calls=%zu calls-to-open=%zu "
	       "ours=%.1fms peer=%.1fms ratio=%.2f goal=2.00 %s\n",
	       count, entries, call_count, open_calls, ours[DEBUG_ROUNDS / 2],
	       peer[DEBUG_ROUNDS / 2], ratio, ratio <= 2 ? "ok" : "short");
	return NULL;
}

int main(int argc, char **argv)
{
	static double ours[MAX_ROUNDS], peer[MAX_ROUNDS];
	int rounds = DEFAULT_ROUNDS;
	double ratio;
	struct sym_error *error = NULL;
	size_t methods = 0;
	uint64_t base;

	if (argc < 2)
		return 0;
	pid = (pid_t)strtol(argv[1], NULL, 10);
	if (argc > 2)
		rounds = (int)strtol(argv[2], NULL, 10);
	if (rounds < 1 || rounds > MAX_ROUNDS)
		return 2;
	base = runtime_base();
	calls = share(MAX_CALLS * sizeof(*calls));
	shared = share(sizeof(*shared));
	if (!calls || !shared)
		return 1;
	if (!measure_first(base))
		fprintf(stderr, "bench_contract: the process cannot be read by a new one\n");
	for (int i = 0; !error && i < rounds; i++) {
		call_count = 0;
		error = read_all(base, &ours[i], &methods);
		peer[i] = error ? 0 : repeat_calls();
	}
	if (error) {
		fprintf(stderr, "bench_contract: %s\n", sym_error_message(error));
		return 1;
	}
	qsort(ours, (size_t)rounds, sizeof(ours[0]), compare);
	qsort(peer, (size_t)rounds, sizeof(peer[0]), compare);
	ratio = ours[rounds / 2] / peer[rounds / 2];
	printf("contract/%zu-methods/cpu ours=%.1fms peer=%.1fms ratio=%.2f goal=2.00 %s "
	       "best=%.1fms/%.1fms=%.2f\n",
	       methods, ours[rounds / 2], peer[rounds / 2], ratio, ratio <= 2 ? "ok" : "short",
	       ours[0], peer[0], ours[0] / peer[0]);
	printf("contract/%zu-methods/calls ours=%zu peer=- ratio=- goal=499 %s\n", methods,
	       call_count, call_count < 500 ? "ok" : "short");
	error = measure_debug(base);
	if (error)
		fprintf(stderr, "bench_contract: %s\n", sym_error_message(error));
	sym_error_destroy(error);
	return 0;
}
