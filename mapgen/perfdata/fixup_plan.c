/* SPDX-License-Identifier: MIT */
#include "mapgen/perfdata/fixup_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "libsym/base/path.h"
#include "libsym/format/linux/mapping_name.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfdata/fixup_internal.h"

void fixup_plan_deinit(struct fixup_plan *plan)
{
	fixup_forget_files(plan);
	for (size_t i = 0; i < plan->symfile_count; i++)
		free(plan->symfiles[i].label);
	for (size_t i = 0; i < plan->process_count; i++) {
		free(plan->processes[i].comm);
		free(plan->processes[i].code_place);
		free(plan->processes[i].code_owner);
		failures_deinit(&plan->processes[i].failures);
	}
	fixup_ahead_close(plan);
	free(plan->symfiles);
	free(plan->processes);
}

static bool speaks_of_dotnet(const struct process_fixup *process_fixup)
{
	for (size_t i = 0; i < process_fixup->count; i++) {
		const char *name = process_fixup->mappings[i].name;

		/* Any program may be called NAME.exe. */
		if ((path_is_assembly(name) && strcasecmp(name + strlen(name) - 4, ".exe") != 0) ||
		    mapping_name_is_doublemapper(name) ||
		    !strcmp(path_file_name(name), "libcoreclr.so"))
			return true;
	}
	return false;
}

static void leave(struct process_fixup *process_fixup, const struct recorded_mapping *mapping)
{
	process_fixup->process->left++;
	if (path_is_assembly(mapping->name) &&
	    fixup_is_missing(process_fixup->plan->options, mapping))
		return; /* complain_of_missing() */
	process_fixup_complain(process_fixup, mapping->name,
			       message_format("no names were found for the mapping at 0x%" PRIx64,
					      mapping->start_address));
}

/* How many .NET files are not on this machine, and the first of them. */
static size_t count_missing(const struct process_fixup *process_fixup, const char **first_ret)
{
	size_t count = 0;

	*first_ret = NULL;
	for (size_t i = 0; i < process_fixup->count; i++) {
		const struct recorded_mapping *mapping = &process_fixup->mappings[i];
		bool is_known = false;

		if (mapping->fix != RECORDED_AS_IT_IS || !path_is_assembly(mapping->name) ||
		    !fixup_is_missing(process_fixup->plan->options, mapping))
			continue;
		/* Names are kept once, so that equal ones are the same. */
		for (size_t k = 0; k < i && !is_known; k++)
			is_known = process_fixup->mappings[k].name == mapping->name;
		count += !is_known;
		*first_ret = *first_ret ? *first_ret : mapping->name;
	}
	return count;
}

/* One cause is one line. */
static void complain_of_missing(struct process_fixup *process_fixup)
{
	const char *first;
	size_t count = count_missing(process_fixup, &first);

	if (count)
		process_fixup_complain(
			process_fixup, "",
			message_format("%zu .NET file%s %s not on this machine "
				       "(%s%s): run perf-fix where it was recorded, or say "
				       "--root=DIR",
				       count, count == 1 ? "" : "s", count == 1 ? "is" : "are",
				       path_file_name(first), count == 1 ? "" : ", ..."));
}

/* Managed memory without names, for the last line. */
static void count_left(struct process_fixup *process_fixup)
{
	for (size_t i = 0; i < process_fixup->count; i++) {
		const struct recorded_mapping *mapping = &process_fixup->mappings[i];

		if (is_fixed_already(mapping))
			process_fixup->process->fixed_before++;
		else if (mapping->fix == RECORDED_AS_IT_IS &&
			 (path_is_assembly(mapping->name) ||
			  mapping_name_is_doublemapper(mapping->name)))
			leave(process_fixup, mapping);
	}
	complain_of_missing(process_fixup);
}

static void decide_the_rest(struct process_fixup *process_fixup)
{
	decide_by_files(process_fixup);
	/* The perf map that a live process writes may name code that it no longer has. */
	decide_by_saved_map(process_fixup);
	count_left(process_fixup);
	process_fixup_count_lost(process_fixup);
}

/* For a process without .NET. False when there is nothing to name. */
static bool decide_native(struct process_fixup *process_fixup)
{
	if (process_fixup->plan->options->native == NATIVE_ALL)
		decide_by_files(process_fixup);
	/* Reports what a live process has that cannot be named. */
	if (process_fixup->process->native_images ||
	    (process_fixup->process->lives && process_fixup->process->failures.count))
		return true;
	failures_deinit(&process_fixup->process->failures);
	free(process_fixup->process->comm);
	return false;
}

static bool decide(struct fixup_plan *plan, struct recorded_mapping *mappings, size_t count,
		   size_t data_count)
{
	struct planned_process *processes =
		reallocarray(plan->processes, plan->process_count + 1, sizeof(*processes));
	struct process_fixup process_fixup = {
		.plan = plan,
		.mappings = mappings,
		.count = count,
		.data_count = data_count,
		.memory_fd = -1,
		.root_fd = -1,
	};
	bool has_decided;

	if (!processes) {
		message("out of memory");
		return false;
	}
	plan->processes = processes;
	process_fixup.process = &processes[plan->process_count];
	*process_fixup.process = (struct planned_process){ .pid = mappings[0].pid };
	has_decided = decide_by_process(&process_fixup);
	process_fixup.process->is_dotnet =
		!process_fixup.no_runtime && (has_decided || speaks_of_dotnet(&process_fixup));
	if (process_fixup.process->is_dotnet)
		decide_the_rest(&process_fixup);
	else if (!decide_native(&process_fixup))
		return true;
	plan->process_count++;
	return true;
}

/* The process of the options; the id of a thread stands for it. 0: all. */
static int32_t chosen_process(const struct options *options, const struct recorded_maps *maps)
{
	int32_t pid;

	for (size_t i = 0; i < maps->count; i++)
		if (maps->items[i].pid == options->pid)
			return options->pid;
	pid = options->pid ? target_of_thread(options->pid, options->root) : 0;
	return pid ? pid : options->pid;
}

bool fixup_plan_make(struct fixup_plan *plan, struct recorded_maps *maps)
{
	const int32_t only = chosen_process(plan->options, maps);
	size_t end, ahead = 0;

	for (size_t first = 0; first < maps->count; first = end) {
		struct recorded_mapping *mappings = &maps->items[first];
		size_t count;

		if (first >= ahead)
			ahead = fixup_ahead_open(plan, maps, first, only);
		end = fixup_process_end(maps, first, &count);
		if (count && (!only || mappings->pid == only) &&
		    !decide(plan, mappings, count, end - first - count))
			return false;
	}
	return true;
}
