/* SPDX-License-Identifier: MIT */
#include "libsym/clr/diagnostics/rundown.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/clr/diagnostics/rundown_events.h"
#include "libsym/clr/diagnostics/rundown_session.h"
#include "libsym/format/perf/perfmap_tier.h"
#include "libsym/limits.h"

const char *rundown_tier(uint32_t flags)
{
	return perfmap_tiers[perfmap_tier_of_flags(flags)];
}

/* ---- the list ---------------------------------------------------------------- */

static int compare_methods(const void *a, const void *b)
{
	const struct rundown_method *left = a, *right = b;

	if (left->start_address != right->start_address)
		return left->start_address < right->start_address ? -1 : 1;
	return left->name < right->name ? -1
					: left->name > right->name; /* in the order of arrival */
}

static int compare_modules(const void *a, const void *b)
{
	const struct rundown_module *left = a, *right = b;

	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	return left->path < right->path ? -1 : left->path > right->path;
}

/*
 * Composite images list each instance once for every component. A module comes twice, once with its
 * domain.
 */
static void keep_one_of_each(struct rundown *rundown)
{
	size_t kept = 0;

	if (rundown->method_count)
		qsort(rundown->methods, rundown->method_count, sizeof(*rundown->methods),
		      compare_methods);
	for (size_t i = 0; i < rundown->method_count; i++)
		if (!kept ||
		    rundown->methods[kept - 1].start_address != rundown->methods[i].start_address)
			rundown->methods[kept++] = rundown->methods[i];
	rundown->method_count = kept;
	kept = 0;
	if (rundown->module_count)
		qsort(rundown->modules, rundown->module_count, sizeof(*rundown->modules),
		      compare_modules);
	for (size_t i = 0; i < rundown->module_count; i++)
		if (!kept || rundown->modules[kept - 1].id != rundown->modules[i].id)
			rundown->modules[kept++] = rundown->modules[i];
	rundown->module_count = kept;
}

struct sym_error *rundown_parse(const void *data, size_t size_bytes, struct rundown *ret)
{
	struct rundown rundown = { 0 };
	struct rundown_gathering gathering;
	struct nettrace_sink sink = { .context = &gathering, .event = rundown_take_event };
	struct sym_error *error;

	rundown_gathering_init(&gathering, &rundown);
	error = nettrace_parse(data, size_bytes, &sink);
	if (!error && !gathering.no_memory && gathering.names.failure == BUF_OK)
		keep_one_of_each(&rundown);
	if (!error)
		error = rundown_place_texts(&gathering);
	rundown_gathering_deinit(&gathering);
	if (error)
		rundown_deinit(&rundown);
	else
		*ret = rundown;
	return error;
}

void rundown_deinit(struct rundown *rundown)
{
	free(rundown->modules);
	free(rundown->methods);
	free(rundown->names);
	*rundown = (struct rundown){ 0 };
}

struct sym_error *rundown_ask(const struct diagnostics_place *place, struct rundown *ret)
{
	struct sym_error *error;
	uint64_t made_bytes;
	struct buf stream;

	buf_init(&stream, rundown_session_most_bytes(place->account));
	buf_charge(&stream, place->account);
	error = rundown_session_record(place, 0, &stream);
	/* The parsed data may be three times as large; they are not counted in detail. */
	made_bytes = 3 * (uint64_t)stream.size_bytes;
	if (!error)
		error = budget_charge(place->account, made_bytes, "a rundown");
	if (!error) {
		error = rundown_parse(stream.data, stream.size_bytes, ret);
		budget_release(place->account, made_bytes);
	}
	buf_deinit(&stream);
	return error;
}
