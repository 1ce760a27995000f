/* SPDX-License-Identifier: MIT */
/*
 * The command watch: does what merge does once, and keeps the map complete while the process goes
 * on. Each refresh reads only what is new, and a map is written only when something is new. Ends
 * with the process, after the time of --for, or on a signal, and prints what it cost.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/monotonic.h"
#include "mapgen/cli/name_form.h"
#include "mapgen/cli/run_budget.h"
#include "mapgen/cli/target.h"
#include "mapgen/cli/work_directory.h"
#include "mapgen/perfmap/merge_write.h"

/* Where the runtime writes its methods itself, what it leaves out (stubs) is appended this often.
 */
static const double append_seconds = 10;
/* When the runtime does not answer a refresh, the end waits this long for it. */
static const int grace_ms = 30000;

struct watching {
	struct merge merge;
	struct sym_live *live;
	int pid_fd, signal_fd; /* -1: not available */
	const char *end;       /* why it ended; NULL while it runs */
	char *trouble;         /* the last error, so that it is printed once */
	double begin_s, last_append_s;
	double begin_cpu_s;
	uint64_t looks, changes, failed_looks, added, removed, written_lines;
	bool behind;       /* something new was not written yet */
	uint64_t found_at; /* generation of `live` that merge.info is of */
	enum sym_jit_method method;
};

static double seconds_of(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

/* CPU time of this process and of the children that wrote for it. */
static double cpu_s(void)
{
	struct rusage own, children;

	getrusage(RUSAGE_SELF, &own);
	getrusage(RUSAGE_CHILDREN, &children);
	return seconds_of(&own.ru_utime) + seconds_of(&own.ru_stime) +
	       seconds_of(&children.ru_utime) + seconds_of(&children.ru_stime);
}

/* ---- writing -------------------------------------------------------------- */

/* Symbols of a refresh live until the next refresh, whether it changes something, fails, or not. */
static bool take_up(struct watching *watching)
{
	struct merge *merge = &watching->merge;
	struct sym_error *error = sym_live_jit(watching->live, &merge->jit);

	merge->snapshot = sym_live_snapshot(watching->live);
	return message_error(error);
}

static bool write_map(struct watching *watching)
{
	struct merge *merge = &watching->merge;

	merge->counts =
		merge_lines_count(merge->symbols, sym_snapshot_image_count(merge->snapshot));
	free(merge->path);
	merge->path = NULL;
	if (merge->options->output ? !merge_write_elsewhere(merge)
				   : !merge_at_location(merge, merge_write_at))
		return false;
	merge_add_troubles(merge);
	watching->behind = false;
	return true;
}

/* The runtime is writing the map, and we append to its file. */
static bool is_appending(const struct merge *merge)
{
	return !merge->options->output && merge->options->mode != MERGE_MODE_REPLACE &&
	       merge->info->writer_fd >= 0;
}

static bool process_has_ended(const struct watching *watching)
{
	struct pollfd process = { .fd = watching->pid_fd, .events = POLLIN };

	return watching->pid_fd >= 0 ? poll(&process, 1, 0) > 0
				     : kill(watching->merge.options->pid, 0) && errno == ESRCH;
}

static bool find_perf_map(struct watching *watching)
{
	watching->merge.snapshot = sym_live_snapshot(watching->live);
	if (!merge_find_perf_map(&watching->merge))
		return false;
	watching->found_at = sym_live_generation(watching->live);
	return true;
}

/* The place of the map is freed with its snapshot. A process that has ended cannot be read again.
 */
static bool renew_perf_map(struct watching *watching)
{
	return watching->found_at == sym_live_generation(watching->live) ||
	       process_has_ended(watching) || find_perf_map(watching);
}

static bool write_change(struct watching *watching, const struct sym_live_change *change)
{
	double now = monotonic_seconds();
	bool appending;

	if (process_has_ended(watching)) {
		if (watching->found_at != sym_live_generation(watching->live))
			return true;
	} else if (!find_perf_map(watching)) {
		return false;
	}
	appending = is_appending(&watching->merge);
	if (appending && !change->images && !watching->end &&
	    now - watching->last_append_s < append_seconds)
		return true;
	watching->last_append_s = now;
	if (!write_map(watching))
		return false;
	watching->written_lines += watching->merge.written_lines;
	return true;
}

/* ---- looking -------------------------------------------------------------- */

static void say_once(struct watching *watching, struct sym_error *error)
{
	const char *text = sym_error_message(error);

	watching->failed_looks++;
	if (!watching->trouble || strcmp(watching->trouble, text) != 0) {
		message("refresh failed, will retry: %s", text);
		free(watching->trouble);
		watching->trouble = message_format("%s", text);
	}
	sym_error_destroy(error);
}

static void note_way(struct watching *watching)
{
	struct merge *merge = &watching->merge;

	watching->method = merge->jit->method;
	if (watching->method == SYM_JIT_RUNDOWN)
		merge_note(merge, "the runtime reports each method that it compiles until this "
				  "ends, over the same socket");
}

/* Methods were added that only a rundown lists, or the process was stopped before. */
static void note_other_way(struct watching *watching)
{
	struct merge *merge = &watching->merge;

	if (merge->jit->method == watching->method)
		return;
	if (merge->jit->method == SYM_JIT_RUNDOWN)
		merge_note(merge,
			   "%sthe runtime was asked over its diagnostics socket to list its "
			   "methods",
			   watching->method == SYM_JIT_CONTRACT
				   ? "hot reload or a profiler has added methods: "
				   : "");
	if (watching->method == SYM_JIT_NONE)
		failures_drop(&merge->failures, merge_jit_subject);
	note_way(watching);
}

static bool has_ended(const struct sym_error *error)
{
	return sym_error_code(error) == SYM_ERROR_STALE ||
	       sym_error_code(error) == SYM_ERROR_NOT_FOUND;
}

static bool take_change(struct watching *watching, const struct sym_live_change *change)
{
	if (!renew_perf_map(watching))
		return false;
	if (change->symbols) {
		watching->changes++;
		watching->added += change->added;
		watching->removed += change->removed;
		watching->behind = true;
	}
	return !watching->behind || write_change(watching, change);
}

static struct sym_error *watch_list(struct watching *watching, struct sym_live_change *change)
{
	return sym_live_symbols(watching->live, merge_symbols_flags, &watching->merge.symbols,
				change);
}

/* False only when the map cannot be written. A process that has ended has nothing to read, but its
 * runtime may have reported something before. */
static bool watch_refresh(struct watching *watching)
{
	struct sym_live_change change = { .size = sizeof(change) };
	struct sym_error *error = watch_list(watching, &change);

	run_budget_step(watching->merge.options);
	if (error && has_ended(error)) {
		if (!watching->end || strcmp(watching->end, "process") != 0)
			message("%s", sym_error_message(error));
		sym_error_destroy(error);
		watching->end = "process";
		return true;
	}
	watching->looks++;
	if (!take_up(watching)) {
		sym_error_destroy(error);
		return false;
	}
	note_other_way(watching);
	if (error) {
		say_once(watching, error);
		return true;
	}
	return take_change(watching, &change);
}

static struct timespec timespec_of(double seconds)
{
	struct timespec time = { .tv_sec = seconds > 0 ? (time_t)seconds : 0 };

	if (seconds > 0)
		time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
	return time;
}

/* Waits until `until_s`, the end of the process, or a signal; sets `end`. True: the time was
 * reached. */
static bool wait_once(struct watching *watching, double until_s)
{
	struct pollfd wanted[] = {
		{ .fd = watching->pid_fd, .events = POLLIN },
		{ .fd = watching->signal_fd, .events = POLLIN },
	};
	int ready;

	do {
		struct timespec left = timespec_of(until_s - monotonic_seconds());

		ready = ppoll(wanted, sizeof(wanted) / sizeof(wanted[0]), &left, NULL);
	} while (ready < 0 && errno == EINTR);
	if (wanted[0].revents || wanted[1].revents)
		watching->end = wanted[0].revents ? "process" : "signal";
	return !watching->end;
}

/* The reports of a runtime must be received before the process ends, even if the next refresh is
 * far away. A process that called exec() waits for the next refresh. */
static void watch_receive(struct watching *watching)
{
	struct sym_error *error = sym_snapshot_check(sym_live_snapshot(watching->live));

	if (!error) {
		sym_live_idle(watching->live);
		renew_perf_map(watching);
	}
	sym_error_destroy(error);
}

static void wait_until(struct watching *watching, double until_s)
{
	while (watching->method == SYM_JIT_RUNDOWN) {
		int32_t next_ms = sym_live_next_ms(watching->live);
		double next_s = monotonic_seconds() + next_ms / 1e3;

		if (next_ms < 0 || next_s >= until_s)
			break;
		if (!wait_once(watching, next_s))
			return;
		watch_receive(watching);
	}
	wait_once(watching, until_s);
}

static bool go_on(struct watching *watching)
{
	const struct options *options = watching->merge.options;
	double interval_s = options->interval_seconds > 0 ? options->interval_seconds : 1;
	double end_s = watching->begin_s + options->for_seconds, next_s = watching->begin_s;

	while (!watching->end) {
		next_s += interval_s;
		if (next_s < monotonic_seconds())
			next_s = monotonic_seconds(); /* the machine is too busy: missed refreshes
							 are skipped */
		if (options->for_seconds > 0 && next_s >= end_s)
			next_s = end_s;
		wait_until(watching, next_s);
		if (!watching->end && options->for_seconds > 0 && next_s >= end_s)
			watching->end = "time";
		/* Also at the end, so that the map is fresh. */
		if (!watch_refresh(watching))
			return false;
	}
	return true;
}

/* ---- an end that a look holds up -------------------------------------------- */

/* Shared with a thread that waits for the last refresh, which may outlive the command. */
struct grace {
	int signal_fd; /* -1: only the time counts */
	double left_s; /* 0: any time */
};

static void *end_anyhow(void *context)
{
	struct grace grace = *(struct grace *)context;
	struct pollfd signals = { .fd = grace.signal_fd, .events = POLLIN };
	struct timespec left = timespec_of(grace.left_s);

	free(context);
	if (ppoll(&signals, 1, grace.left_s > 0 ? &left : NULL, NULL) > 0 &&
	    !(signals.revents & POLLIN))
		return NULL;
	poll(NULL, 0, grace_ms);
	message("the process did not answer in time: ended without a last refresh");
	_exit(EXIT_PARTLY);
}

/* If no thread can start, the process is expected to answer. */
static void in_background(int signal_fd, double left_s)
{
	struct grace *grace = malloc(sizeof(*grace));
	pthread_t thread;

	if (!grace)
		return;
	*grace = (struct grace){ signal_fd, left_s };
	if (pthread_create(&thread, NULL, end_anyhow, grace))
		free(grace);
	else
		pthread_detach(thread);
}

/* ---- the command ------------------------------------------------------------ */

static int catch_signals(void)
{
	sigset_t signals = work_directory_signals();

	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool makes_code(struct sym_snapshot *snapshot)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);

	if (!target_aot_program(snapshot))
		return true;
	message("process %d (%s) is NativeAOT: it compiles no code while it runs; use merge",
		process->pid, process->comm);
	return false;
}

static bool watch_begin(struct watching *watching)
{
	struct merge *merge = &watching->merge;
	const struct options *options = merge->options;
	const struct sym_snapshot_opts snapshot = {
		.size = sizeof(snapshot),
		.relative_map_dirs = options->relmap_dirs.items,
		.jit = (uint32_t)options->jit,
		.debug_dirs = options->debug_dirs.items,
		.budget = options->budget,
	};
	const struct sym_live_opts opts = { .size = sizeof(opts), .snapshot = &snapshot };
	struct sym_error *error = sym_live_open(options->pid, &opts, &watching->live);

	if (!message_error(error))
		return false;
	merge->snapshot = sym_live_snapshot(watching->live);
	if (!target_is_dotnet(merge->snapshot) || !makes_code(merge->snapshot) ||
	    !merge_enable_perf_map(merge))
		return false;
	watching->pid_fd =
		(int)syscall(SYS_pidfd_open, sym_snapshot_process(merge->snapshot)->pid, 0);
	error = watch_list(watching, NULL);
	if (!message_error(error))
		return false;
	if (!take_up(watching))
		return false;
	if (!find_perf_map(watching))
		return false;
	if (!options->output)
		merge_say_what_hides(merge);
	if (!write_map(watching) || !merge_add_jit_trouble(merge))
		return false;
	note_way(watching);
	return true;
}

static void say_the_beginning(struct watching *watching)
{
	const struct merge *merge = &watching->merge;

	if (!merge->options->output)
		merge_say_who_must_refresh(&watching->merge);
	watching->begin_s = watching->last_append_s = monotonic_seconds();
	watching->begin_cpu_s = cpu_s();
	if (merge->options->json)
		return;
	printf("%s: %zu symbols, jitted code by %s\n", merge->path ? merge->path : "",
	       sym_symbols_count(merge->symbols), target_jit_word(merge->jit->method));
	fflush(stdout);
}

static double percent_of_core(const struct watching *watching, double seconds)
{
	return seconds > 0 ? 100 * (cpu_s() - watching->begin_cpu_s) / seconds : 0;
}

static void print_json(const struct watching *watching, double seconds)
{
	const struct merge *merge = &watching->merge;

	json_output_print(json_pack(
		"{s:o, s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:O}", "map",
		json_output_text(merge->path), "end", watching->end, "seconds", seconds,
		"refreshes", (json_int_t)watching->looks, "changes", (json_int_t)watching->changes,
		"failed_refreshes", (json_int_t)watching->failed_looks, "added",
		(json_int_t)watching->added, "removed", (json_int_t)watching->removed,
		"first_cpu_seconds", watching->begin_cpu_s, "cpu_seconds",
		cpu_s() - watching->begin_cpu_s, "cpu_percent", percent_of_core(watching, seconds),
		"jit", merge_jit_json(merge), "failures", json_output_failures(&merge->failures),
		"notes", merge->notes));
}

static int watch_report(struct watching *watching)
{
	double seconds = monotonic_seconds() - watching->begin_s;
	const char *ends[] = { "process", "the process ended", "time", "the time is over",
			       "signal",  "a signal came" };
	const char *why = "";

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i += 2)
		if (!strcmp(ends[i], watching->end))
			why = ends[i + 1];
	failures_print(&watching->merge.failures);
	if (watching->merge.options->json)
		print_json(watching, seconds);
	else
		printf("watched for %.1f s, until %s: %" PRIu64 " refreshes, %" PRIu64
		       " of them with changes, %" PRIu64 " lines added, %" PRIu64
		       " removed; %.2f s of CPU for the first, %.2f s since (%.2f %% of one "
		       "core)\n",
		       seconds, why, watching->looks, watching->changes, watching->added,
		       watching->removed, watching->begin_cpu_s, cpu_s() - watching->begin_cpu_s,
		       percent_of_core(watching, seconds));
	return watching->merge.failures.count ? EXIT_PARTLY : EXIT_DONE;
}

static const char *usage_trouble(const struct options *options)
{
	if (options->root)
		return "a recorded process does not change: there is nothing to watch";
	if (options->output && (options->mode || options->in_target))
		return "--output does not go with --mode and --in-target";
	if (options->output && !strcmp(options->output, "-"))
		return "watch writes a file again and again: --output=- makes no sense";
	return NULL;
}

int watch_run(const struct options *options)
{
	struct watching watching = { .merge = { .options = options }, .pid_fd = -1 };
	struct merge *merge = &watching.merge;
	const char *trouble = usage_trouble(options);
	int exit_code = EXIT_FAILED;

	if (!options_have_one_pid(options, "watch"))
		return EXIT_USAGE;
	if (trouble) {
		message("%s", trouble);
		return EXIT_USAGE;
	}
	merge->write_flags = name_form_write_flags(options);
	merge->notes = json_array();
	watching.signal_fd = catch_signals();
	in_background(watching.signal_fd, 0);
	if (watch_begin(&watching)) {
		say_the_beginning(&watching);
		if (options->for_seconds > 0)
			in_background(-1, options->for_seconds);
		if (go_on(&watching))
			exit_code = watch_report(&watching);
	}
	json_decref(merge->notes);
	sym_live_close(watching.live);
	failures_deinit(&merge->failures);
	free(merge->path);
	free(watching.trouble);
	if (watching.pid_fd >= 0)
		close(watching.pid_fd);
	if (watching.signal_fd >= 0)
		close(watching.signal_fd);
	return exit_code;
}
