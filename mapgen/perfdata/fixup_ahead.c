/* SPDX-License-Identifier: MIT */
/*
 * Opens live .NET processes before their turn. A runtime may not answer, so the processes of one
 * group are waited for together.
 */
#include "libsym/base/cleanup.h"
#include "mapgen/cli/target.h"
#include "mapgen/perfdata/fixup_internal.h"

struct sym_error *fixup_open_snapshot(const struct options *options, int32_t pid,
				      struct sym_snapshot **ret)
{
	const struct sym_snapshot_opts opts = {
		.size = sizeof(opts),
		.flags = SYM_SNAPSHOT_FORK_FOR_DWARF,
		.root = options->root,
		.jit = (uint32_t)options->jit,
		.debug_dirs = options->debug_dirs.items,
		.budget = options->budget,
	};

	return sym_snapshot_open(pid, &opts, ret);
}

/* When it cannot be opened, a message follows when its turn comes. */
static void open_one(struct fixup_plan *plan, const struct recorded_mapping *mappings, size_t count)
{
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct sym_error *error = fixup_open_snapshot(plan->options, mappings->pid, &snapshot);

	if (!error && sym_snapshot_process(snapshot)->runtime_version &&
	    fixup_is_the_recorded(mappings, count, snapshot))
		plan->ahead[plan->ahead_count++] = STEAL(snapshot);
	sym_error_destroy(error);
}

size_t fixup_ahead_open(struct fixup_plan *plan, const struct recorded_maps *maps, size_t first,
			int32_t only)
{
	fixup_ahead_close(plan);
	while (first < maps->count && plan->ahead_count < PROCESSES_AHEAD) {
		const struct recorded_mapping *mappings = &maps->items[first];
		size_t count;

		first = fixup_process_end(maps, first, &count);
		if (count && (!only || mappings->pid == only))
			open_one(plan, mappings, count);
	}
	if (plan->ahead_count > 1)
		target_read_code(plan->ahead, plan->ahead_count);
	return first;
}

struct sym_snapshot *fixup_ahead_take(struct fixup_plan *plan, int32_t pid)
{
	for (size_t i = 0; i < plan->ahead_count; i++)
		if (plan->ahead[i] && sym_snapshot_process(plan->ahead[i])->pid == pid)
			return STEAL(plan->ahead[i]);
	return NULL;
}

void fixup_ahead_close(struct fixup_plan *plan)
{
	for (size_t i = 0; i < plan->ahead_count; i++)
		sym_snapshot_close(plan->ahead[i]);
	plan->ahead_count = 0;
}
