/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "libsym/error.h"
#include "mapgen/view/text_parts.h"
#include "mapgen/view/thread_times.h"
#include "mapgen/view/units.h"

static void write_row(const struct view *view, const struct thread_time *time, FILE *to)
{
	const struct thread_table *threads = &view->profile->threads;
	const struct profile_thread *thread = &threads->threads[time->thread];
	char cpu[UNITS_ROOM], samples[UNITS_ROOM], blocked[UNITS_ROOM], preempted[UNITS_ROOM];

	fprintf(to, "%8s %8s %9s %10s  %7d  ", units_time(time->cpu_ns, cpu),
		units_count(time->samples, samples), units_time(time->off_cpu_ns, blocked),
		units_time(time->preempted_ns, preempted), thread->tid);
	text_parts_put_padded(*thread->name ? thread->name : "(no name)", 15, to);
	fprintf(to, "  %s\n", threads->processes[thread->process].name);
}

struct sym_error *text_parts_write_threads(const struct view *view, FILE *to)
{
	struct thread_times times;
	struct sym_error *error = thread_times_make(view, &times);
	size_t shown;
	char room[UNITS_ROOM];

	if (error)
		return error;
	shown = view_shown_rows(view, times.count);
	fprintf(to, "%s threads", units_count(times.count, room));
	text_parts_put_seconds(view->profile, to);
	fprintf(to, "\n%8s %8s %9s %10s  %7s  %-15s  %s\n", "CPU", "SAMPLES", "BLOCKED",
		"PREEMPTED", "TID", "NAME", "PROCESS");
	for (size_t i = 0; i < shown; i++)
		write_row(view, &times.items[i], to);
	text_parts_put_left_out(times.count - shown, "threads", to);
	thread_times_deinit(&times);
	return NULL;
}
