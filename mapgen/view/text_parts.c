/* SPDX-License-Identifier: MIT */
#include "mapgen/view/text_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/base/utf8.h"
#include "libsym/error.h"
#include "mapgen/profile/stack_quality.h"
#include "mapgen/view/units.h"

enum {
	MOST_CAUSES = 3, /* in one line */
};

void text_parts_put_padded(const char *text, size_t width, FILE *to)
{
	fprintf(to, "%s%*s", text, utf8_padding(text, width), "");
}

void text_parts_put_name(const struct view *view, const char *name, size_t width, FILE *to)
{
	size_t count, tail;

	if (!name)
		name = "";
	count = utf8_count(name);
	if (!view->width || count <= width || width < 8) {
		text_parts_put_padded(name, width, to);
		return;
	}
	tail = width / 2;
	fprintf(to, "%.*s...%s", (int)(utf8_skip(name, width - tail - 3) - name), name,
		utf8_skip(name, count - tail));
}

void text_parts_put_left_out(size_t count, const char *what, FILE *to)
{
	char room[UNITS_ROOM];

	if (count)
		fprintf(to, "  ...  (%s more %s; --top=0 shows all)\n", units_count(count, room),
			what);
}

void text_parts_put_seconds(const struct profile *profile, FILE *to)
{
	if (profile->end_ns > profile->begin_ns)
		fprintf(to, ", %.1f s", profile_seconds(profile));
}

/* ---- the title ------------------------------------------------------------------------------- */

/* How many processes were seen at work; *last_ret: the last of them. */
static size_t count_processes(const struct profile *profile, uint32_t *last_ret)
{
	const struct thread_table *threads = &profile->threads;
	bool *seen AUTO_FREE = calloc(threads->process_count + 1, sizeof(*seen));
	size_t count = 0;

	*last_ret = UINT32_MAX;
	for (size_t i = 0; seen && i < profile->entry_count; i++) {
		uint32_t process = threads->threads[profile->entries[i].thread].process;

		count += !seen[process];
		seen[process] = true;
		*last_ret = process;
	}
	return count;
}

void text_parts_put_whose(const struct profile *profile, FILE *to)
{
	const struct thread_table *threads = &profile->threads;
	char room[UNITS_ROOM];
	uint32_t last;
	size_t count = count_processes(profile, &last);
	const struct profile_process *process = count == 1 ? &threads->processes[last] : NULL;

	if (profile->title)
		fputs(profile->title, to);
	else if (process)
		fputs(*process->name ? process->name : "a process", to);
	else
		fprintf(to, "%s processes", units_count(count, room));
	if (profile->pid)
		fprintf(to, " (PID %d%s%s)", profile->pid, profile->runtime ? ", " : "",
			profile->runtime ? profile->runtime : "");
	else if (process && process->pid > 0)
		fprintf(to, " (PID %d)", process->pid);
	text_parts_put_seconds(profile, to);
}

void text_parts_write_title(const struct view *view, const struct selection *selection, FILE *to)
{
	const struct profile *profile = view->profile;
	const struct profile_event *event = &profile->events[selection->event];
	bool is_off_cpu = event->kind == PROFILE_OFF_CPU;
	char time[UNITS_ROOM], count[UNITS_ROOM];

	if (is_off_cpu)
		fputs("Blocked time of ", to);
	else
		fprintf(to, "%s of ", event->kind == PROFILE_CPU ? "CPU" : event->name);
	text_parts_put_whose(profile, to);
	fprintf(to, ", %s thread%s", units_count(selection->thread_count, count),
		selection->thread_count == 1 ? "" : "s");
	units_time(selection->total_weight, time);
	units_count(selection->total_count, count);
	if (is_off_cpu)
		fprintf(to, ": %s in %s waits\n", time, count);
	else if (event->kind == PROFILE_CPU && event->is_time)
		fprintf(to, ": %s of CPU in %s samples\n", time, count);
	else if (event->unit == PROFILE_UNIT_BYTES)
		fprintf(to, ": %s in %s samples\n", units_bytes(selection->total_weight, time),
			count);
	else if (event->kind >= PROFILE_GC)
		fprintf(to, event->is_time ? ": %s events, %s\n" : ": %s events\n", count, time);
	else
		fprintf(to, ": %s samples\n", count);
	if (selection->hidden_threads)
		fprintf(to, "  %s parked pool threads hidden (%s; --idle shows them)\n",
			units_count(selection->hidden_threads, count),
			units_time(selection->hidden_weight, time));
}

/* ---- what is missing ------------------------------------------------------------------------- */

static void put_cut(const struct stack_quality *quality, FILE *to)
{
	char cut[UNITS_ROOM], all[UNITS_ROOM];

	if (quality->whole_samples == quality->samples)
		return;
	fprintf(to, "%s of %s stacks end early:",
		units_count(quality->samples - quality->whole_samples, cut),
		units_count(quality->samples, all));
	for (size_t i = 0; i < quality->cut_count && i < MOST_CAUSES; i++)
		fprintf(to, "%s %s in %s (%s)", i ? "," : "",
			units_count(quality->cut[i].count, cut),
			*quality->cut[i].image ? path_file_name(quality->cut[i].image)
					       : "memory of no file",
			quality->cut[i].reason);
	if (quality->cut_count > MOST_CAUSES)
		fprintf(to, ", and %zu more causes", quality->cut_count - MOST_CAUSES);
	fputc('\n', to);
}

static void put_unnamed(const struct stack_quality *quality, FILE *to)
{
	uint64_t named = 0, all = 0;
	char room[UNITS_ROOM];

	for (int kind = 0; kind < FRAME_KINDS; kind++) {
		named += quality->named_frames[kind];
		all += quality->frames[kind];
	}
	if (named == all)
		return;
	fprintf(to, "%s of frames have no name:", units_percent(all - named, all, room));
	for (size_t i = 0; i < quality->unnamed_count && i < MOST_CAUSES; i++)
		fprintf(to, "%s %s in %s (%s)", i ? "," : "",
			units_percent(quality->unnamed[i].count, all, room),
			*quality->unnamed[i].image ? path_file_name(quality->unnamed[i].image)
			: quality->unnamed[i].kind == FRAME_KIND_KERNEL ? "the kernel"
									: "memory of no file",
			quality->unnamed[i].reason);
	fputc('\n', to);
}

void text_parts_put_losses(const struct profile *profile, FILE *to)
{
	const struct profile_losses *losses = &profile->losses;
	char room[UNITS_ROOM];
	const struct {
		uint64_t count;
		const char *what;
	} rows[] = {
		{ losses->lost_records, "records were lost: the machine was too busy" },
		{ losses->lost_samples, "samples were lost: the machine was too busy" },
		{ losses->throttled, "times the kernel took fewer samples than it was asked for" },
		{ losses->unknown_processes,
		  "samples are of processes that ended before they were looked at" },
		{ losses->bad_records, "records or lines of the input made no sense" },
		{ losses->bad_name_lines, "lines of names in the recording made no sense" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].count)
			fprintf(to, "%s %s\n", units_count(rows[i].count, room), rows[i].what);
	if (losses->places_without_line)
		fprintf(to, "%s places in managed code have no source line (%s)\n",
			units_count(losses->places_without_line, room),
			losses->line_reason ? losses->line_reason : "out of memory");
	if (losses->cut)
		fprintf(to, "%s\n", losses->cut);
}

static const char *why_without_end(const struct profile_losses *losses)
{
	return losses->by_sched_switch
		       ? "the end is not in the recording; perf record -e sched:sched_switch "
			 "has it only with -a, and only of waits that ended"
		       : "the record of the end was lost";
}

static void put_off_cpu_losses(const struct profile *profile, FILE *to)
{
	const struct profile_losses *losses = &profile->losses;
	char count[UNITS_ROOM], time[UNITS_ROOM];
	uint32_t preempted = profile_find_event(profile, PROFILE_PREEMPTED);

	if (preempted != UINT32_MAX)
		fprintf(to, "%s more: threads could run and had no processor, %s times\n",
			units_time(profile->events[preempted].weight, time),
			units_count(profile->events[preempted].count, count));
	if (losses->early_waits)
		fprintf(to, "%s wait%s (%s) had begun before the recording, so without a stack\n",
			units_count(losses->early_waits, count),
			losses->early_waits == 1 ? "" : "s",
			units_time(losses->early_wait_ns, time));
	if (losses->waits_without_end)
		fprintf(to, "%s wait%s left out: %s\n",
			units_count(losses->waits_without_end, count),
			losses->waits_without_end == 1 ? " is" : "s are", why_without_end(losses));
	if (losses->waits_without_stack)
		fprintf(to, "%s waits have no stack: context switches were not sampled\n",
			units_count(losses->waits_without_stack, count));
}

void text_parts_write_losses(const struct view *view, const struct selection *selection, FILE *to)
{
	struct stack_quality quality;
	struct sym_error *error = stack_quality_measure(view->profile, selection->event, &quality);

	if (error) {
		sym_error_destroy(error);
		return;
	}
	put_cut(&quality, to);
	put_unnamed(&quality, to);
	stack_quality_deinit(&quality);
	if (view->profile->events[selection->event].kind == PROFILE_OFF_CPU)
		put_off_cpu_losses(view->profile, to);
	text_parts_put_losses(view->profile, to);
}

/* ---- what comes next ------------------------------------------------------------------------- */

void text_parts_say_missing(const struct view *view, FILE *to)
{
	const struct profile_losses *losses = &view->profile->losses;

	if (view->kind == VIEW_OFF_CPU && losses->unreadable_switches)
		fprintf(to,
			"%s has samples of sched:sched_switch whose fields are not those of its "
			"threads (recorded in a container?): dotnet-mapgen record --off-cpu "
			"records waits there\n",
			view->input);
	else if (view->kind == VIEW_OFF_CPU && losses->by_sched_switch)
		fprintf(to, "%s has no whole wait: %s\n", view->input, why_without_end(losses));
	else if (view->kind == VIEW_OFF_CPU)
		fprintf(to,
			"%s has no context switches: record them with dotnet-mapgen record "
			"--off-cpu, or perf record -g -e cpu-clock -e context-switches -c 1 "
			"--switch-events\n",
			view->input);
	else
		fprintf(to, "%s has no samples\n", view->input);
}

void text_parts_write_next(const struct view *view, FILE *to)
{
	bool has_off_cpu = view_find_event(view->profile, VIEW_OFF_CPU) != UINT32_MAX;

	if (view_find_event(view->profile, VIEW_CPU) == UINT32_MAX)
		return;
	fprintf(to, "Next: dotnet-mapgen report cpu -i %s --by=tree    who calls whom\n",
		view->input);
	if (has_off_cpu)
		fprintf(to, "      dotnet-mapgen report off-cpu -i %s    what it waits for\n",
			view->input);
	fprintf(to, "      dotnet-mapgen report threads -i %s    which threads\n", view->input);
}
