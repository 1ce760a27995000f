/* SPDX-License-Identifier: MIT */
/*
 * A map comes right before the method that it belongs to, and all tiers of a method have the same
 * id. So the last map waits for the next event with its id.
 */
#include "libsym/clr/diagnostics/rundown_lines.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/ascending.h"
#include "libsym/base/grow.h"
#include "libsym/clr/diagnostics/rundown_events.h"
#include "libsym/clr/diagnostics/rundown_session.h"

/* The runtime reports no more entries (MAX_EVENT_ENTRIES); the rest of such a map is missing. */
enum {
	CUT_ENTRIES = 7000,
};

struct rundown_lines {
	struct rundown rundown; /* the methods that have a map */
	struct il_map_entry *entries;
	size_t entry_count, entry_capacity;
};

/* State of parsing. */
struct gathering {
	struct rundown_gathering events;
	struct rundown_lines *lines;
	uint64_t pending_id; /* of the method whose map came last; 0: none */
	uint32_t first, count;
};

void rundown_lines_close(struct rundown_lines *lines)
{
	if (!lines)
		return;
	rundown_deinit(&lines->rundown);
	free(lines->entries);
	free(lines);
}

/* ---- events ------------------------------------------------------------------------- */

static int compare_entries(const void *left, const void *right)
{
	const struct il_map_entry *a = left, *b = right;

	if (a->native_offset != b->native_offset)
		return a->native_offset < b->native_offset ? -1 : 1;
	/* At one place the order does not matter to the rule, but the result must be stable. */
	return a->il_offset < b->il_offset ? -1 : a->il_offset > b->il_offset;
}

static void take_map(struct gathering *gathering, struct reader payload)
{
	struct rundown_lines *lines = gathering->lines;
	uint64_t id = reader_u64(&payload);
	struct reader natives;
	uint32_t count;

	gathering->pending_id = 0;
	reader_skip(&payload, 9);
	count = reader_u16(&payload);
	natives = reader_part(&payload, payload.position + (size_t)count * 4, (size_t)count * 4);
	if (!reader_ok(&payload) || !reader_ok(&natives) || count >= CUT_ENTRIES)
		return;
	gathering->first = (uint32_t)lines->entry_count;
	for (uint32_t i = 0; i < count; i++) {
		struct il_map_entry entry = { .il_offset = (int32_t)reader_u32(&payload) };

		entry.native_offset = reader_u32(&natives);
		if (entry.il_offset < IL_OFFSET_EPILOG)
			return;
		if (lines->entry_count >= UINT32_MAX ||
		    !grow_items((void **)&lines->entries, &lines->entry_capacity,
				lines->entry_count, sizeof(entry))) {
			gathering->events.no_memory = true;
			return;
		}
		lines->entries[lines->entry_count++] = entry;
	}
	gathering->count = count;
	gathering->pending_id = id;
	if (count)
		qsort(lines->entries + gathering->first, count, sizeof(*lines->entries),
		      compare_entries);
}

/* Gives the map to the method that follows it. Methods without a map are left out. */
static bool take_method(struct gathering *gathering, const struct nettrace_event *event,
			struct reader payload)
{
	struct rundown *rundown = &gathering->lines->rundown;
	size_t before = rundown->method_count;

	if (reader_u64(&payload) != gathering->pending_id || !reader_ok(&payload))
		return true;
	gathering->pending_id = 0;
	if (!rundown_take_event(&gathering->events, event))
		return false;
	if (rundown->method_count != before) {
		rundown->methods[before].first_entry = gathering->first;
		rundown->methods[before].entry_count = gathering->count;
	}
	return true;
}

static bool take_event(void *context, const struct nettrace_event *event)
{
	struct gathering *gathering = context;
	struct reader payload = reader_over(event->payload, event->payload_bytes);

	if (strcmp(event->provider, RUNDOWN_PROVIDER) != 0)
		return true;
	switch (event->event_id) {
	case 143:
	case 144:
		return take_method(gathering, event, payload);
	case 149:
	case 150:
		take_map(gathering, payload);
		return !gathering->events.no_memory;
	default:
		return rundown_take_event(&gathering->events, event);
	}
}

/* ---- the whole ---------------------------------------------------------------------- */

struct sym_error *rundown_lines_parse(const void *data, size_t size_bytes,
				      struct rundown_lines **ret)
{
	struct rundown_lines *lines AUTO_RUNDOWN_LINES = calloc(1, sizeof(*lines));
	struct gathering gathering = { .lines = lines };
	const struct nettrace_sink sink = { .context = &gathering, .event = take_event };
	struct sym_error *error;

	if (!lines)
		return &sym_error_no_memory;
	rundown_gathering_init(&gathering.events, &lines->rundown);
	error = nettrace_parse(data, size_bytes, &sink);
	if (!error)
		error = rundown_gathering_finish(&gathering.events);
	rundown_gathering_deinit(&gathering.events);
	if (!error)
		*ret = STEAL(lines);
	return error;
}

struct sym_error *rundown_lines_ask(const struct diagnostics_place *place,
				    struct rundown_lines **ret)
{
	struct sym_error *error;
	struct buf stream;

	buf_init(&stream, rundown_session_most_bytes(place->account));
	buf_charge(&stream, place->account);
	error = rundown_session_record(place, RUNDOWN_WITH_MAPS, &stream);
	if (!error)
		error = rundown_lines_parse(stream.data, stream.size_bytes, ret);
	buf_deinit(&stream);
	return error;
}

bool rundown_lines_find(const struct rundown_lines *lines, uint64_t start_address,
			uint64_t size_bytes, struct rundown_map *ret)
{
	const struct rundown *rundown = &lines->rundown;
	size_t at = ASCENDING_COUNT(rundown->method_count, i,
				    rundown->methods[i].start_address < start_address);
	const struct rundown_method *method = &rundown->methods[at];
	size_t module;

	if (at == rundown->method_count || method->start_address != start_address ||
	    method->size_bytes != size_bytes)
		return false;
	module = ASCENDING_COUNT(rundown->module_count, i,
				 rundown->modules[i].id < method->module_id);
	*ret = (struct rundown_map){
		.token = method->token,
		.module_path = module < rundown->module_count &&
					       rundown->modules[module].id == method->module_id
				       ? rundown->modules[module].path
				       : NULL,
		.name = method->name,
		.entries = lines->entries + method->first_entry,
		.count = method->entry_count,
	};
	return true;
}
