/* SPDX-License-Identifier: MIT */
#include "libsym/clr/rundown.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/clr/rundown_events.h"
#include "libsym/clr/rundown_session.h"
#include "libsym/limits.h"

const char *rundown_tier(uint32_t flags)
{
	static const char *const names[8] = {
		NULL,
		"MinOptJitted",
		"Optimized",
		"QuickJitted",
		"OptimizedTier1",
		"OptimizedTier1OSR",
		"InstrumentedTier",
		"InstrumentedTierOptimized",
	};

	return names[flags >> 7 & 7];
}

/* ---- the list ---------------------------------------------------------------- */

static int compare_methods(const void *a, const void *b)
{
	const struct rundown_method *left = a, *right = b;

	if (left->start_address != right->start_address)
		return left->start_address < right->start_address ? -1 : 1;
	return left->name < right->name ? -1 : left->name > right->name; /* as they came */
}

static int compare_modules(const void *a, const void *b)
{
	const struct rundown_module *left = a, *right = b;

	if (left->id != right->id)
		return left->id < right->id ? -1 : 1;
	return left->path < right->path ? -1 : left->path > right->path;
}

/* Composite images have each instance once for every component; a module comes twice, once with its
 * domain. */
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

const char *rundown_module_path(const struct rundown *rundown, uint64_t id)
{
	size_t low = 0, high = rundown->module_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (rundown->modules[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < rundown->module_count && rundown->modules[low].id == id
		       ? rundown->modules[low].path
		       : NULL;
}

struct sym_error *rundown_ask(const struct diagnostics_place *place, struct rundown *ret)
{
	struct sym_error *error;
	struct buf stream;

	buf_init(&stream, LIMIT_RUNDOWN_BYTES);
	error = rundown_session_record(place, &stream);
	if (!error)
		error = rundown_parse(stream.data, stream.size_bytes, ret);
	buf_deinit(&stream);
	return error;
}
