/* SPDX-License-Identifier: MIT */
/*
 * The command record: finds what is to be recorded, records until the time is up, the processes
 * have ended or a signal comes, and writes one file beside its place, then renames it.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "mapgen/cli/capabilities.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/monotonic.h"
#include "mapgen/cli/process_name.h"
#include "mapgen/cli/progress.h"
#include "mapgen/cli/run_budget.h"
#include "mapgen/cli/target.h"
#include "mapgen/cli/temporary_file.h"
#include "mapgen/command/record.h"
#include "mapgen/command/record_events.h"
#include "mapgen/command/recording_profile.h"
#include "mapgen/record/recorder.h"
#include "mapgen/record/recording_file.h"
#include "mapgen/record/started_program.h"

enum {
	DEFAULT_FREQUENCY_HZ = 99,
	MOST_FREQUENCY_HZ = 10000,
	CPU_STACK_BYTES = 60 << 10,
	SWITCH_STACK_BYTES = 32 << 10,
	PROBE_STACK_BYTES = 32 << 10,
	STEP_MS = 100,
};

DEFINE_GUARD(recorder, struct recorder *, recorder_destroy)
DEFINE_GUARD(profile, struct profile *, profile_destroy)

static volatile sig_atomic_t is_interrupted;

static void note_signal(int number)
{
	(void)number;
	is_interrupted = 1;
}

struct recording {
	const struct options *options;
	int32_t *pids;
	size_t count;
	char *title; /* for people, and for the name of the file */
	struct recorder *recorder;
	struct record_events events;
	FILE *perf_data; /* temporary, unless the output is a perf.data */
	struct path_output output;
	char *output_path;
	char *command_line;             /* as perf report shows it */
	bool is_perf_data;              /* the output: no archive around it */
	struct started_program program; /* what stands behind -- */
	time_t begin_time;
	double begin_seconds; /* CLOCK_MONOTONIC */
	double seconds;
	/* One of these takes the place of a file; NULL: not this one. */
	const struct record_pictures *pictures;
	struct profile **profile_ret;
};

/* ---- what is to be recorded ------------------------------------------------------------------ */

static bool add_pid(struct recording *recording, int32_t pid)
{
	int32_t *pids = reallocarray(recording->pids, recording->count + 1, sizeof(*pids));

	if (!pids) {
		message("out of memory");
		return false;
	}
	recording->pids = pids;
	pids[recording->count++] = pid;
	return true;
}

static int check_targets(const struct recording *recording)
{
	const struct options *options = recording->options;

	if (options->program && !options->program[0]) {
		message("record: there is no program behind --");
		return EXIT_USAGE;
	}
	if (!recording->count && !options->whole_system && !options->program) {
		message("record needs a PID, the name of a process, --all, or -- PROGRAM; see "
			"dotnet-mapgen record --help");
		return EXIT_USAGE;
	}
	if (recording->count && (options->whole_system || options->program)) {
		message("record takes processes, or --all and a program, not both");
		return EXIT_USAGE;
	}
	return EXIT_DONE;
}

static int find_targets(struct recording *recording)
{
	const struct options *options = recording->options;
	int32_t pid;

	if (options->pid && !add_pid(recording, options->pid))
		return EXIT_FAILED;
	for (size_t i = 0; i < options->operand_count; i++) {
		if (!options_read_pid(options->operands[i], &pid) &&
		    !process_name_choose(options->operands[i], &pid))
			return EXIT_USAGE;
		if (!add_pid(recording, pid))
			return EXIT_FAILED;
	}
	return check_targets(recording);
}

static int choose_title(struct recording *recording)
{
	const struct options *options = recording->options;

	if (recording->count)
		recording->title = process_name_of(recording->pids[0]);
	else if (options->program)
		recording->title = strdup(path_file_name(options->program[0]));
	if (!recording->title)
		recording->title = strdup(recording->count ? "process" : "system");
	return recording->title ? EXIT_DONE : EXIT_FAILED;
}

/* ---- the output ------------------------------------------------------------------------------ */

/* NAME-YYYYMMDD-HHMMSS.trace.zip, with nothing in NAME that could leave the directory. */
static char *default_path(const struct recording *recording)
{
	struct tm when;
	char text[32];

	localtime_r(&recording->begin_time, &when);
	strftime(text, sizeof(text), "%Y%m%d-%H%M%S", &when);
	for (char *c = recording->title; *c; c++)
		if (*c == '/' || (unsigned char)*c < 0x20)
			*c = '_';
	return message_format("%s-%s.trace.zip", recording->title, text);
}

/* `fd`: of the output; -1: not in it. */
static bool open_perf_data(struct recording *recording, int fd)
{
	struct sym_error *error = NULL;

	if (fd < 0)
		error = temporary_file_stream(&recording->perf_data);
	else
		recording->perf_data = fdopen(fd, "w+");
	if (fd >= 0 && !recording->perf_data)
		error = &sym_error_no_memory;
	return message_error(error);
}

static bool open_output(struct recording *recording)
{
	const char *wanted = recording->options->output;
	int failure, fd;

	if (recording->pictures || recording->profile_ret)
		return open_perf_data(recording, -1);
	recording->output_path = wanted ? strdup(wanted) : default_path(recording);
	if (!recording->output_path)
		return false;
	recording->is_perf_data = path_ends_with(recording->output_path, ".data");
	failure = path_output_open(&recording->output, recording->output_path);
	if (failure) {
		message("%s: cannot write: %s", recording->output_path, strerror(-failure));
		return false;
	}
	fd = recording->is_perf_data ? fcntl(recording->output.fd, F_DUPFD_CLOEXEC, 3) : -1;
	return open_perf_data(recording, fd);
}

/* ---- recording ------------------------------------------------------------------------------- */

static unsigned int frequency_of(const struct options *options)
{
	if (options->frequency_hz == UINT32_MAX)
		return 0;
	return options->frequency_hz ?: DEFAULT_FREQUENCY_HZ;
}

static struct event_plan make_plan(const struct options *options)
{
	return (struct event_plan){
		.frequency_hz = frequency_of(options),
		.has_off_cpu = options->off_cpu_us > 0,
		.shortest_wait_us = options->off_cpu_us,
		/* The kernel rejects them without the permission to see them. */
		.has_kernel = !options->no_kernel && event_set_may_see_kernel(),
		.copies_stacks = options->unwind == UNWIND_WHOLE,
		.cpu_stack_bytes = CPU_STACK_BYTES,
		.switch_stack_bytes = SWITCH_STACK_BYTES,
		.has_probes = record_events_wanted(options),
		.probe_stack_bytes = PROBE_STACK_BYTES,
	};
}

/*
 * Raises the priority: a reader that must wait for a processor loses the records that the kernel
 * writes until then. It is no error if that is not permitted.
 */
static void hurry(void)
{
	enum {
		BEFORE_OTHERS = -20
	};

	(void)setpriority(PRIO_PROCESS, 0, BEFORE_OTHERS);
}

/* Each thread has an event, or two, on each processor. */
static void raise_descriptor_limit(void)
{
	FILE *file = fopen("/proc/sys/fs/nr_open", "re");
	unsigned long most = 0;
	struct rlimit limit;

	if (file && fscanf(file, "%lu", &most) == 1) {
		limit = (struct rlimit){ most, most };
		(void)setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (file)
		fclose(file);
}

static struct sym_error *start_events(struct recording *recording)
{
	const struct options *options = recording->options;
	struct sym_error *error = NULL;

	if (!record_events_init(&recording->events, options, recording->recorder))
		return &sym_error_no_memory;
	if (!record_events_wanted(options))
		return NULL;
	for (size_t i = 0; !error && i < recording->count; i++)
		error = record_events_add(&recording->events, recording->pids[i]);
	if (recording->program.pid)
		record_events_expect(&recording->events, recording->program.pid);
	return error;
}

static struct sym_error *start(struct recording *recording)
{
	const struct event_plan plan = make_plan(recording->options);
	double ring_seconds = recording->options->ring_seconds;
	struct sym_error *error;

	hurry();
	raise_descriptor_limit();
	error = recorder_create(&plan, recording->options->budget, recording->perf_data,
				recording->options->keep_stack_bytes, &recording->recorder);
	if (!error && ring_seconds)
		error = recorder_keep_last(recording->recorder, (uint64_t)(ring_seconds * 1e9));
	if (!error && recording->options->whole_system)
		error = recorder_add_system(recording->recorder);
	for (size_t i = 0; !error && i < recording->count; i++)
		error = recorder_add_process(recording->recorder, recording->pids[i], false);
	if (!error)
		error = start_events(recording);
	if (error || !recording->program.pid)
		return error;
	/* With --all it is recorded like all others. */
	if (!recording->options->whole_system)
		error = recorder_add_process(recording->recorder, recording->program.pid, true);
	if (!error)
		error = started_program_begin(&recording->program, recording->options->program[0]);
	return error;
}

/* ---- what is said of it ---------------------------------------------------------------------- */

static json_t *losses(const struct recorder_counts *counts)
{
	json_t *cut = json_object();

	for (int end = SYM_UNWIND_WHOLE + 1; end <= SYM_UNWIND_FULL; end++)
		json_object_set_new(cut, sym_unwind_end_text((enum sym_unwind_end)end),
				    json_integer((json_int_t)counts->cut_stacks[end]));
	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "short_waits",
		(json_int_t)counts->short_waits, "lost_records", (json_int_t)counts->lost_records,
		"lost_switch_samples", (json_int_t)counts->lost_switches, "lost_event_stacks",
		(json_int_t)counts->lost_probe_samples, "throttled", (json_int_t)counts->throttled,
		"guessed_frames", (json_int_t)counts->guessed_frames, "unknown_processes",
		(json_int_t)counts->unknown_processes, "cut_stacks", cut);
}

static double own_cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* ".NET 10.0.12", or null. */
static json_t *describe_runtime(const struct recording *recording)
{
	const struct sym_process_info *info =
		recording->count == 1
			? recorder_process_info(recording->recorder, recording->pids[0])
			: NULL;

	return info && info->runtime_version ? json_sprintf(".NET %s", info->runtime_version)
					     : json_null();
}

static json_t *describe(const struct recording *recording)
{
	const struct recorder_counts *counts = recorder_counts(recording->recorder);
	const struct options *options = recording->options;
	struct utsname system;
	json_t *pids = json_array();

	uname(&system);
	for (size_t i = 0; i < recording->count; i++)
		json_array_append_new(pids, json_integer(recording->pids[i]));
	return json_pack("{s:i, s:s, s:s, s:o, s:s, s:s, s:I, s:I, s:I, s:f, s:o, s:s, s:i, s:b, "
			 "s:b, s:f, s:I, s:I, s:I, s:I, s:o, s:o}",
			 "format", RECORDING_FORMAT, "version", sym_version(), "title",
			 recording->title, "runtime", describe_runtime(recording), "kernel",
			 system.release, "clock", "CLOCK_MONOTONIC", "begin_time",
			 (json_int_t)recording->begin_time, "begin_ns",
			 (json_int_t)(recording->begin_seconds * 1e9), "end_ns",
			 (json_int_t)((recording->begin_seconds + recording->seconds) * 1e9),
			 "seconds", recording->seconds, "pids", pids, "unwind",
			 options->unwind == UNWIND_FP ? "fp" : "whole", "frequency_hz",
			 (int)frequency_of(options), "off_cpu", options->off_cpu_us > 0,
			 "switch_samples_permitted",
			 !recorder_has_no_switch_samples(recording->recorder), "own_cpu_seconds",
			 own_cpu_seconds(), "cpu_samples", (json_int_t)counts->cpu_samples,
			 "switch_samples", (json_int_t)counts->switch_samples, "probe_samples",
			 (json_int_t)counts->probe_samples, "whole_stacks",
			 (json_int_t)counts->whole_stacks, "event_streams",
			 record_events_describe(&recording->events), "losses", losses(counts));
}

static struct recording_parts make_parts(const struct recording *recording, const json_t *about)
{
	return (struct recording_parts){
		.perf_data = recording->perf_data,
		.symbols = name_table_text(recorder_names(recording->recorder)),
		.stacks = recorder_stacks(recording->recorder),
		.about = about,
		.streams = recording->events.streams,
		.stream_count = recording->events.count,
	};
}

static struct sym_error *write_parts(struct recording *recording, struct recording_parts *parts)
{
	FILE *text GUARDED(file) = NULL, *file GUARDED(file) = NULL;
	struct sym_error *error = NULL;
	int fd;

	if (recording->profile_ret)
		return recording_profile_open(recording->options, parts, false,
					      recording->profile_ret);
	if (recording->options->perfview)
		error = recording_profile_print(recording->options, parts, &text);
	if (error)
		return error;
	parts->perfview_text = text;
	fd = fcntl(recording->output.fd, F_DUPFD_CLOEXEC, 3);
	file = fd >= 0 ? fdopen(fd, "w+") : NULL;
	return file ? recording_file_write(file, parts)
		    : sym_error_create(SYM_ERROR_IO, "out of descriptors");
}

static struct sym_error *save(struct recording *recording)
{
	/* Before what is said of them. */
	const struct recorded_stream *streams = record_events_streams(&recording->events);
	json_t *about = streams ? describe(recording) : NULL;
	struct recording_parts parts = make_parts(recording, about);
	struct sym_error *error = about ? write_parts(recording, &parts) : &sym_error_no_memory;

	json_decref(about);
	return error;
}

/* ---- recording ------------------------------------------------------------------------------- */

static void show_progress(const struct recording *recording, struct progress *progress)
{
	const struct recorder_counts *counts = recorder_counts(recording->recorder);
	double limit = recording->options->for_seconds,
	       passed = monotonic_seconds() - recording->begin_seconds;
	char time[64], text[256];

	if (!progress->shown)
		return;
	snprintf(time, sizeof(time), limit ? "%.0f of %.0f s" : "%.0f s", passed, limit);
	snprintf(text, sizeof(text),
		 "Recording %.60s: %s, %" PRIu64 " samples, %" PRIu64 " lost; Ctrl-C ends it",
		 recording->title, time, counts->cpu_samples + counts->switch_samples,
		 counts->lost_records);
	progress_line(progress, text);
}

/* Shows what was recorded since the last picture. *goes_on_ret: there is to be another one. */
static struct sym_error *show_picture(struct recording *recording, bool *goes_on_ret)
{
	const struct record_pictures *pictures = recording->pictures;
	struct profile *profile GUARDED(profile) = NULL;
	struct sym_error *error = recorder_pause(recording->recorder, recording->command_line);
	struct recording_parts parts;
	json_t *about;

	if (error)
		return error;
	recording->seconds = monotonic_seconds() - recording->begin_seconds;
	about = describe(recording);
	parts = make_parts(recording, about);
	error = recording_profile_open(recording->options, &parts, false, &profile);
	json_decref(about);
	if (error)
		return error;
	*goes_on_ret = pictures->show(pictures->context, profile);
	recording->begin_seconds = monotonic_seconds();
	return recorder_go_on(recording->recorder);
}

static struct sym_error *run_pictures(struct recording *recording)
{
	struct sym_error *error = NULL;
	bool goes_on = true, has_ended = false;

	recording->begin_seconds = monotonic_seconds();
	while (!error && goes_on && !has_ended && !is_interrupted) {
		error = recorder_step(recording->recorder, STEP_MS, &has_ended);
		run_budget_step_if_due(recording->options);
		recording->pictures->step(recording->pictures->context);
		if (!error && (has_ended || is_interrupted ||
			       monotonic_seconds() - recording->begin_seconds >=
				       recording->pictures->seconds))
			error = show_picture(recording, &goes_on);
	}
	return error;
}

/* Where the last seconds begin that are kept; 0: everything is. */
static uint64_t find_ring_begin(struct recording *recording)
{
	double end = recording->begin_seconds + recording->seconds,
	       ring = recording->options->ring_seconds;
	uint64_t stopped_ns = record_events_stopped_ns(&recording->events);
	double first = (stopped_ns ? (double)stopped_ns / 1e9 : end) - ring;

	if (!ring || first <= recording->begin_seconds)
		return 0;
	recording->begin_seconds = first;
	recording->seconds = end - first;
	return (uint64_t)(first * 1e9);
}

static struct sym_error *finish_recording(struct recording *recording)
{
	uint64_t from_ns = find_ring_begin(recording);
	/* Before the probes are removed: events until then have native stacks. */
	struct sym_error *error = record_events_finish(&recording->events, from_ns);

	return error ? error
		     : recorder_finish(recording->recorder, recording->command_line, from_ns);
}

static struct sym_error *run(struct recording *recording)
{
	double begin = recording->begin_seconds = monotonic_seconds(),
	       limit = recording->options->for_seconds;
	struct progress progress = { 0 };
	struct sym_error *error = NULL;
	bool has_ended = false;

	if (!recording->options->batch)
		progress_begin(&progress, 0);
	while (!error && !has_ended && !is_interrupted &&
	       !record_events_stopped_ns(&recording->events) &&
	       (!limit || monotonic_seconds() - begin < limit)) {
		error = recorder_step(recording->recorder, STEP_MS, &has_ended);
		if (!error)
			error = record_events_step(&recording->events);
		if (recording->program.pid)
			has_ended = started_program_has_ended(&recording->program);
		run_budget_step_if_due(recording->options);
		show_progress(recording, &progress);
	}
	progress_end(&progress);
	recording->seconds = monotonic_seconds() - begin;
	return error ? error : finish_recording(recording);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 100.0;
}

static void say_program(const struct recording *recording)
{
	const char *name = recording->options->program[0];
	int status = recording->program.status;

	if (!recording->program.has_ended)
		printf("  %s goes on\n", name);
	else if (WIFSIGNALED(status))
		printf("  %s was ended by signal %d\n", name, WTERMSIG(status));
	else
		printf("  %s ended with status %d\n", name, WEXITSTATUS(status));
}

static void say_result(const struct recording *recording)
{
	const struct recorder_counts *counts = recorder_counts(recording->recorder);
	uint64_t stacks = 0;

	for (int end = 0; end <= SYM_UNWIND_FULL; end++)
		stacks += counts->cut_stacks[end];
	printf("Recording of %s: %s\n", recording->title, recording->output_path);
	printf("  %" PRIu64 " CPU samples", counts->cpu_samples);
	if (recording->options->off_cpu_us)
		printf(", %" PRIu64 " context switches", counts->switch_samples);
	printf(" in %.1f s", recording->seconds);
	if (recording->options->unwind == UNWIND_WHOLE && stacks)
		printf("; %.1f %% of stacks whole", percent(counts->whole_stacks, stacks));
	printf("; %.1f s of CPU for recording\n", own_cpu_seconds());
	for (int end = SYM_UNWIND_WHOLE + 1; end <= SYM_UNWIND_FULL; end++)
		if (counts->cut_stacks[end])
			printf("  %" PRIu64 " stack%s early: %s\n", counts->cut_stacks[end],
			       counts->cut_stacks[end] == 1 ? " ends" : "s end",
			       sym_unwind_end_text((enum sym_unwind_end)end));
	if (counts->lost_records)
		printf("  %" PRIu64 " records were lost: the machine was too busy\n",
		       counts->lost_records);
	if (counts->short_waits)
		printf("  %" PRIu64 " waits of less than %u us have times and no stack\n",
		       counts->short_waits, recording->options->off_cpu_us);
	if (counts->lost_switches)
		printf("  %" PRIu64
		       " context switches have times and no stack: the machine was too "
		       "busy\n",
		       counts->lost_switches);
	if (counts->throttled)
		printf("  the kernel left out samples %" PRIu64
		       " times: lower --frequency, or raise "
		       "kernel.perf_event_max_sample_rate\n",
		       counts->throttled);
	if (counts->unknown_processes)
		printf("  %" PRIu64 " samples of processes that had ended before they could be "
		       "looked at\n",
		       counts->unknown_processes);
	record_events_say(&recording->events);
	if (recording->program.pid)
		say_program(recording);
	if (recorder_has_no_switch_samples(recording->recorder))
		printf("  off-CPU times have no stacks: context switches need CAP_PERFMON\n");
}

static int finish(struct recording *recording)
{
	struct sym_error *error = recording->is_perf_data ? NULL : save(recording);
	int failure;

	if (!message_error(error))
		return EXIT_FAILED;
	failure = recording->profile_ret ? 0 : path_output_commit(&recording->output, 0600, true);
	if (failure) {
		message("%s: cannot write: %s", recording->output_path, strerror(-failure));
		return EXIT_FAILED;
	}
	if (!recording->profile_ret)
		say_result(recording);
	return recording->events.missing_count ? EXIT_PARTLY : EXIT_DONE;
}

static void deinit(struct recording *recording)
{
	record_events_deinit(&recording->events);
	recorder_destroy(recording->recorder);
	if (recording->perf_data)
		fclose(recording->perf_data);
	path_output_abandon(&recording->output);
	started_program_deinit(&recording->program);
	free(recording->output_path);
	free(recording->command_line);
	free(recording->pids);
	free(recording->title);
}

/* The program has all rights of the caller; the recorder keeps what it needs. */
static bool prepare_program(struct recording *recording)
{
	char **words = recording->options->program;
	uint64_t kept = capabilities_of(COMMAND_RECORD);
	struct sym_error *error = NULL;
	int failure;

	if (words)
		error = started_program_prepare(words, &recording->program);
	if (!message_error(error))
		return false;
	if (record_events_wanted(recording->options))
		kept |= capabilities_of_raw_uprobes();
	failure = capabilities_keep(kept);
	if (failure)
		message("cannot give up capabilities: %s", strerror(-failure));
	recording->command_line = words ? message_format("dotnet-mapgen record -- %s", words[0])
					: strdup("dotnet-mapgen record");
	return !failure && recording->command_line;
}

static int record(struct recording *recording)
{
	int status = find_targets(recording);
	struct sym_error *error;

	if (!status)
		status = choose_title(recording);
	if (status)
		return status;
	if (!prepare_program(recording) || !open_output(recording))
		return EXIT_FAILED;
	error = start(recording);
	if (!error)
		error = recording->pictures ? run_pictures(recording) : run(recording);
	if (!message_error(error))
		return EXIT_FAILED;
	return recording->pictures ? EXIT_DONE : finish(recording);
}

static int run_recording(const struct options *options, const struct record_pictures *pictures,
			 struct profile **profile_ret)
{
	struct recording recording = { .options = options,
				       .pictures = pictures,
				       .profile_ret = profile_ret,
				       .begin_time = time(NULL),
				       .output = { .fd = -1, .directory_fd = -1 } };
	const struct sigaction action = { .sa_handler = note_signal };
	int status;

	if (frequency_of(options) > MOST_FREQUENCY_HZ) {
		message("--frequency is at most %d", MOST_FREQUENCY_HZ);
		return EXIT_USAGE;
	}
	if (!frequency_of(options) && !options->off_cpu_us && !record_events_wanted(options)) {
		message("--frequency=0 needs --events or --off-cpu: there is nothing to record");
		return EXIT_USAGE;
	}
	if (!record_events_check(options))
		return EXIT_USAGE;
	if (options->perfview && options->output && path_ends_with(options->output, ".data")) {
		message("--perfview needs an output that ends in .trace.zip");
		return EXIT_USAGE;
	}
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	status = record(&recording);
	deinit(&recording);
	return status;
}

int record_run(const struct options *options)
{
	return run_recording(options, NULL, NULL);
}

int record_pictures(const struct options *options, const struct record_pictures *pictures)
{
	return run_recording(options, pictures, NULL);
}

int record_profile(const struct options *options, struct profile **ret)
{
	return run_recording(options, NULL, ret);
}
