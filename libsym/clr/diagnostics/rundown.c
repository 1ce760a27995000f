/* SPDX-License-Identifier: MIT */
#include "libsym/clr/diagnostics/rundown.h"

#include <stdlib.h>

#include "libsym/clr/diagnostics/rundown_events.h"
#include "libsym/clr/diagnostics/rundown_session.h"
#include "libsym/format/perf/perfmap_tier.h"

const char *rundown_tier(uint32_t flags)
{
	return perfmap_tiers[perfmap_tier_of_flags(flags)];
}

struct sym_error *rundown_parse(const void *data, size_t size_bytes, struct rundown *ret)
{
	struct rundown rundown = { 0 };
	struct rundown_gathering gathering;
	struct nettrace_sink sink = { .context = &gathering, .event = rundown_take_event };
	struct sym_error *error;

	rundown_gathering_init(&gathering, &rundown);
	error = nettrace_parse(data, size_bytes, &sink);
	if (!error)
		error = rundown_gathering_finish(&gathering);
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
