/* SPDX-License-Identifier: MIT */
/*
 * A small profiler: stack_counts.bpf.c counts stacks inside the kernel, and this program names them
 * at the end. It prints folded lines for flamegraph.pl: samples, or with -o the microseconds that
 * threads were off the CPU.
 *
 *   stack_profiler [-p PID] [-d SECONDS] [-F HERTZ] [-o] [-m MICROSECONDS] [-U] [-v]
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "libsym/examples/bpf/stack_counts.h"
#include "libsym/libsym.h"

/* The compiled stack_counts.bpf.c, included by the assembler. */
extern const char bpf_object_start[], bpf_object_end[];
__asm__(".section .rodata\n.balign 16\n"
	".globl bpf_object_start, bpf_object_end\n"
	"bpf_object_start:\n.incbin \"" BPF_OBJECT_PATH "\"\nbpf_object_end:\n.previous\n");

struct profiler {
	uint32_t pid; /* 0: every process */
	unsigned int seconds;
	unsigned int hertz;
	uint64_t least_ns;
	bool off_cpu;
	bool user_only;
	bool verbose;
	struct bpf_object *object;
	struct bpf_program *program;
	struct bpf_link **links; /* one for each CPU, or one */
	int link_count;
	int stacks, counts, lost; /* descriptors of maps */
	/* The current process. */
	struct sym_snapshot *snapshot;
	struct sym_resolver *resolver;
	struct sym_result *result;
	struct sym_result *one; /* for a single address */
	uint32_t named_pid;
};

/* The lines to print, sorted so that each process is named once. */
struct line {
	struct stack_key key;
	uint64_t amount;
};

static int fail(const char *what)
{
	fprintf(stderr, "stack_profiler: %s: %s\n", what, strerror(errno));
	return 1;
}

/* ---- counting --------------------------------------------------------------- */

/* Sets constants of the BPF program, before loading. */
static bool set_constants(struct profiler *profiler)
{
	struct {
		uint32_t wanted_pid;
		uint64_t least_ns;
	} constants = { profiler->pid, profiler->least_ns };
	struct bpf_map *map;

	bpf_object__for_each_map(map, profiler->object)
	{
		if (!strstr(bpf_map__name(map), ".rodata"))
			continue;
		return bpf_map__value_size(map) >= sizeof(constants) &&
		       !bpf_map__set_initial_value(map, &constants, sizeof(constants));
	}
	return false;
}

static int load(struct profiler *profiler)
{
	const char *wanted = profiler->off_cpu ? "off_cpu" : "on_cpu";
	struct bpf_program *program;

	profiler->object = bpf_object__open_mem(bpf_object_start,
						(size_t)(bpf_object_end - bpf_object_start), NULL);
	if (!profiler->object)
		return fail("the BPF object");
	bpf_object__for_each_program(program, profiler->object)
		bpf_program__set_autoload(program, !strcmp(bpf_program__name(program), wanted));
	if (!set_constants(profiler) || bpf_object__load(profiler->object))
		return fail("loading it into the kernel (root is needed, and BTF)");
	profiler->program = bpf_object__find_program_by_name(profiler->object, wanted);
	profiler->stacks = bpf_object__find_map_fd_by_name(profiler->object, "stacks");
	profiler->counts = bpf_object__find_map_fd_by_name(profiler->object, "counts");
	profiler->lost = bpf_object__find_map_fd_by_name(profiler->object, "lost");
	return 0;
}

static int keep_link(struct profiler *profiler, struct bpf_link *link)
{
	if (!link)
		return fail("attaching to the kernel");
	profiler->links[profiler->link_count++] = link;
	return 0;
}

/* Starts a clock on each CPU; the program selects its samples. */
static int attach_clock(struct profiler *profiler, int cpu)
{
	struct perf_event_attr clock = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(clock),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = profiler->hertz,
		.freq = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &clock, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return errno == ENODEV ? 0 : fail("perf_event_open"); /* an offline CPU */
	return keep_link(profiler, bpf_program__attach_perf_event(profiler->program, fd));
}

static int attach(struct profiler *profiler)
{
	int cpus = libbpf_num_possible_cpus(), failed = 0;

	profiler->links = calloc((size_t)cpus, sizeof(*profiler->links));
	if (!profiler->links)
		return fail("memory");
	if (profiler->off_cpu)
		return keep_link(profiler, bpf_program__attach(profiler->program));
	for (int cpu = 0; cpu < cpus && !failed; cpu++)
		failed = attach_clock(profiler, cpu);
	return failed;
}

/* The counts stay. */
static void detach(struct profiler *profiler)
{
	for (int i = 0; i < profiler->link_count; i++)
		bpf_link__destroy(profiler->links[i]);
	profiler->link_count = 0;
	free(profiler->links);
	profiler->links = NULL;
}

static void stop(int number)
{
	(void)number;
}

/* Waits until the time is over or a signal arrives. */
static void wait_for_end(const struct profiler *profiler)
{
	struct sigaction action = { .sa_handler = stop };
	struct timespec time = { .tv_sec = profiler->seconds };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	nanosleep(&time, NULL);
}

/* ---- naming ----------------------------------------------------------------- */

static void forget_process(struct profiler *profiler)
{
	sym_resolver_destroy(profiler->resolver);
	sym_snapshot_close(profiler->snapshot);
	profiler->resolver = NULL;
	profiler->snapshot = NULL;
}

/* A process that has ended has no names, which is not an error. */
static void look_at_process(struct profiler *profiler, uint32_t pid)
{
	struct sym_error *error;

	if (profiler->named_pid == pid)
		return;
	forget_process(profiler);
	profiler->named_pid = pid;
	error = sym_snapshot_open((int32_t)pid, NULL, &profiler->snapshot);
	if (!error)
		error = sym_resolver_create(profiler->snapshot, &profiler->resolver);
	if (error && profiler->verbose)
		fprintf(stderr, "stack_profiler: %s\n", sym_error_message(error));
	sym_error_destroy(error);
}

static void print_name(const char *name)
{
	char shortened[1024];

	sym_name_shorten(name, shortened, sizeof(shortened));
	for (const char *at = shortened; *at; at++)
		putchar(*at == ';' ? ':' : (unsigned char)*at < ' ' ? '?' : *at);
}

/* Frames without a call, such as signal frames, have the start of a function as return address. */
static const char *name_of_beginning(struct profiler *profiler, uint64_t address)
{
	struct sym_error *error =
		sym_resolver_resolve(profiler->resolver, &address, 1, profiler->one);
	const struct sym_answer *answer = error ? NULL : sym_result_at(profiler->one, 0);

	sym_error_destroy(error);
	return answer && !answer->offset_bytes ? answer->name : NULL;
}

/*
 * Outermost first. All user frames except the innermost have return addresses: the call is one byte
 * before.
 */
static void print_stack(struct profiler *profiler, int32_t stack, bool kernel)
{
	uint64_t addresses[STACK_DEPTH] = { 0 };
	size_t count = 0;
	struct sym_error *error = NULL;

	if (stack < 0 || bpf_map_lookup_elem(profiler->stacks, &stack, addresses))
		return;
	while (count < STACK_DEPTH && addresses[count])
		count++;
	for (size_t i = 1; i < count; i++)
		addresses[i]--;
	if (profiler->resolver)
		error = sym_resolver_resolve(profiler->resolver, addresses, count,
					     profiler->result);
	for (size_t i = count; i-- > 0;) {
		const struct sym_answer *answer =
			profiler->resolver && !error ? sym_result_at(profiler->result, i) : NULL;
		const char *name = answer ? answer->name : NULL;

		if (answer && !name && i)
			name = name_of_beginning(profiler, addresses[i] + 1);
		putchar(';');
		if (name)
			print_name(name);
		else
			printf("0x%" PRIx64, addresses[i]);
		if (kernel)
			fputs("_[k]", stdout);
	}
	sym_error_destroy(error);
}

static int compare_lines(const void *left, const void *right)
{
	return memcmp(left, right, sizeof(struct stack_key));
}

/* All keys with their amounts; from malloc(). */
static struct line *read_counts(const struct profiler *profiler, size_t *count_ret)
{
	struct line *lines = calloc(STACKS, sizeof(*lines));
	const struct stack_key *last = NULL;
	size_t count = 0;

	while (lines && count < STACKS &&
	       !bpf_map_get_next_key(profiler->counts, last, &lines[count].key)) {
		bpf_map_lookup_elem(profiler->counts, &lines[count].key, &lines[count].amount);
		last = &lines[count++].key;
	}
	if (lines)
		qsort(lines, count, sizeof(*lines), compare_lines);
	*count_ret = count;
	return lines;
}

static int print_lines(struct profiler *profiler)
{
	size_t count;
	struct line *lines = read_counts(profiler, &count);
	struct sym_error *error = sym_result_create(&profiler->result);

	if (!error)
		error = sym_result_create(&profiler->one);
	if (!lines || error)
		return fail("memory");
	for (size_t i = 0; i < count; i++) {
		uint64_t amount = profiler->off_cpu ? lines[i].amount / 1000 : lines[i].amount;

		look_at_process(profiler, lines[i].key.pid);
		printf("%.16s", lines[i].key.comm);
		print_stack(profiler, lines[i].key.user_stack, false);
		if (!profiler->user_only)
			print_stack(profiler, lines[i].key.kernel_stack, true);
		printf(" %" PRIu64 "\n", amount);
	}
	forget_process(profiler);
	sym_result_destroy(profiler->result);
	sym_result_destroy(profiler->one);
	free(lines);
	return fflush(stdout) ? fail("standard output") : 0;
}

/* ---- what it cost ------------------------------------------------------------- */

static uint64_t lost_stacks(const struct profiler *profiler, uint32_t why)
{
	uint64_t all = 0, *each = calloc((size_t)libbpf_num_possible_cpus(), sizeof(*each));

	if (each && !bpf_map_lookup_elem(profiler->lost, &why, each))
		for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
			all += each[cpu];
	free(each);
	return all;
}

static void print_cost(const struct profiler *profiler)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);
	struct rusage usage;

	bpf_obj_get_info_by_fd(bpf_program__fd(profiler->program), &info, &size);
	getrusage(RUSAGE_SELF, &usage);
	fprintf(stderr,
		"stack_profiler: %" PRIu64 " runs in the kernel, %" PRIu64
		" ns each; own CPU time %.3f s, %ld MB; %" PRIu64 " stacks lost, %" PRIu64
		" without user frames\n",
		(uint64_t)info.run_cnt,
		(uint64_t)(info.run_cnt ? info.run_time_ns / info.run_cnt : 0),
		(double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
			(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
		usage.ru_maxrss / 1024, lost_stacks(profiler, LOST_TABLE_FULL),
		lost_stacks(profiler, LOST_UNWALKED));
}

/* ---- the program ---------------------------------------------------------------- */

static bool read_options(struct profiler *profiler, int argc, char **argv)
{
	int letter;

	while ((letter = getopt(argc, argv, "p:d:F:m:oUv")) != -1) {
		unsigned long number = optarg ? strtoul(optarg, NULL, 10) : 0;

		if (letter == 'p' && number)
			profiler->pid = (uint32_t)number;
		else if (letter == 'd' && number)
			profiler->seconds = (unsigned int)number;
		else if (letter == 'F' && number)
			profiler->hertz = (unsigned int)number;
		else if (letter == 'm')
			profiler->least_ns = (uint64_t)number * 1000;
		else if (letter == 'o')
			profiler->off_cpu = true;
		else if (letter == 'U')
			profiler->user_only = true;
		else if (letter == 'v')
			profiler->verbose = true;
		else
			return false;
	}
	return optind == argc;
}

int main(int argc, char **argv)
{
	struct profiler profiler = { .seconds = 10, .hertz = 99, .least_ns = 1000 };
	int stats = -1, failed;

	if (!read_options(&profiler, argc, argv)) {
		fprintf(stderr, "usage: stack_profiler [-p PID] [-d SECONDS] [-F HERTZ] [-o] "
				"[-m MICROSECONDS] [-U] [-v]\n");
		return 2;
	}
	failed = load(&profiler);
	if (!failed && profiler.verbose)
		stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	failed = failed || attach(&profiler);
	if (!failed) {
		wait_for_end(&profiler);
		detach(&profiler);
		failed = print_lines(&profiler);
	}
	if (!failed && profiler.verbose)
		print_cost(&profiler);
	if (stats >= 0)
		close(stats);
	detach(&profiler);
	bpf_object__close(profiler.object);
	return failed;
}
