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
#include "libsym/clr/diagnostics/rundown_session.h"
#include "libsym/format/nettrace/nettrace.h"
#include "libsym/limits.h"

/* The runtime reports no more entries (MAX_EVENT_ENTRIES); the rest of such a map is missing. */
enum {
	CUT_ENTRIES = 7000,
};

struct line_method {
	uint64_t start_address; /* first: methods are searched by it */
	uint64_t module_id;
	uint32_t size_bytes, token;
	uint32_t first, count; /* entries */
	uint32_t name;         /* offset in `texts` */
};

struct line_module {
	uint64_t id; /* first: modules are searched by it */
	uint32_t path;
};

struct rundown_lines {
	struct line_method *methods;
	size_t method_count, method_capacity;
	struct line_module *modules;
	size_t module_count, module_capacity;
	struct il_map_entry *entries;
	size_t entry_count, entry_capacity;
	struct buf texts;
};

/* State of parsing. */
struct gathering {
	struct rundown_lines *lines;
	uint64_t pending_id; /* of the method whose map came last; 0: none */
	uint32_t first, count;
	bool has_no_memory;
};

void rundown_lines_close(struct rundown_lines *lines)
{
	if (!lines)
		return;
	free(lines->methods);
	free(lines->modules);
	free(lines->entries);
	buf_deinit(&lines->texts);
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
			gathering->has_no_memory = true;
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

static uint32_t take_text(struct rundown_lines *lines, struct reader *payload)
{
	size_t offset = lines->texts.size_bytes;

	nettrace_read_string(payload, &lines->texts);
	buf_append_char(&lines->texts, '\0');
	return (uint32_t)offset;
}

static void take_method(struct gathering *gathering, struct reader payload)
{
	struct rundown_lines *lines = gathering->lines;
	uint64_t id = reader_u64(&payload);
	struct line_method method = { .module_id = reader_u64(&payload) };
	size_t texts_before = lines->texts.size_bytes;

	method.start_address = reader_u64(&payload);
	method.size_bytes = reader_u32(&payload);
	method.token = reader_u32(&payload);
	reader_skip(&payload, 4);
	take_text(lines, &payload); /* owner */
	buf_truncate(&lines->texts, texts_before);
	if (id != gathering->pending_id || !reader_ok(&payload))
		return;
	gathering->pending_id = 0;
	method.name = take_text(lines, &payload);
	method.first = gathering->first;
	method.count = gathering->count;
	if (!grow_items((void **)&lines->methods, &lines->method_capacity, lines->method_count,
			sizeof(method)))
		gathering->has_no_memory = true;
	else
		lines->methods[lines->method_count++] = method;
}

static void take_module(struct gathering *gathering, struct reader payload)
{
	struct rundown_lines *lines = gathering->lines;
	struct line_module module = { .id = reader_u64(&payload) };

	reader_skip(&payload, 16);
	module.path = take_text(lines, &payload);
	if (!reader_ok(&payload))
		return;
	if (!grow_items((void **)&lines->modules, &lines->module_capacity, lines->module_count,
			sizeof(module)))
		gathering->has_no_memory = true;
	else
		lines->modules[lines->module_count++] = module;
}

static bool take_event(void *context, const struct nettrace_event *event)
{
	struct gathering *gathering = context;
	struct reader payload = reader_over(event->payload, event->payload_bytes);

	if (strcmp(event->provider, "Microsoft-Windows-DotNETRuntimeRundown") != 0)
		return true;
	switch (event->event_id) {
	case 143:
	case 144:
		take_method(gathering, payload);
		break;
	case 149:
	case 150:
		take_map(gathering, payload);
		break;
	case 153:
	case 154:
		take_module(gathering, payload);
		break;
	default:
		break;
	}
	return !gathering->has_no_memory && gathering->lines->texts.failure == BUF_OK;
}

/* ---- the whole ---------------------------------------------------------------------- */

static int compare_starts(const void *left, const void *right)
{
	const struct line_method *a = left, *b = right;

	return a->start_address < b->start_address ? -1 : a->start_address > b->start_address;
}

static int compare_ids(const void *left, const void *right)
{
	const struct line_module *a = left, *b = right;

	return a->id < b->id ? -1 : a->id > b->id;
}

struct sym_error *rundown_lines_parse(const void *data, size_t size_bytes,
				      struct rundown_lines **ret)
{
	struct rundown_lines *lines AUTO_RUNDOWN_LINES = calloc(1, sizeof(*lines));
	struct gathering gathering = { .lines = lines };
	const struct nettrace_sink sink = { .context = &gathering, .event = take_event };
	struct sym_error *error;

	if (!lines)
		return &sym_error_no_memory;
	buf_init(&lines->texts, LIMIT_INDEX_NAME_BYTES);
	error = nettrace_parse(data, size_bytes, &sink);
	if (!error && gathering.has_no_memory)
		error = &sym_error_no_memory;
	if (!error && lines->texts.failure != BUF_OK)
		error = sym_error_from_buf(&lines->texts, "names of a rundown");
	if (error)
		return error;
	if (lines->method_count)
		qsort(lines->methods, lines->method_count, sizeof(*lines->methods), compare_starts);
	if (lines->module_count)
		qsort(lines->modules, lines->module_count, sizeof(*lines->modules), compare_ids);
	*ret = STEAL(lines);
	return NULL;
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

static const char *path_of(const struct rundown_lines *lines, uint64_t id)
{
	size_t low = ascending_items_below(lines->modules, lines->module_count,
					   sizeof(*lines->modules), id);

	return low < lines->module_count && lines->modules[low].id == id
		       ? lines->texts.data + lines->modules[low].path
		       : NULL;
}

bool rundown_lines_find(const struct rundown_lines *lines, uint64_t start_address,
			uint64_t size_bytes, struct rundown_map *ret)
{
	size_t low = ascending_items_below(lines->methods, lines->method_count,
					   sizeof(*lines->methods), start_address);
	const struct line_method *method = &lines->methods[low];

	if (low == lines->method_count || method->start_address != start_address ||
	    method->size_bytes != size_bytes)
		return false;
	*ret = (struct rundown_map){
		.token = method->token,
		.module_path = path_of(lines, method->module_id),
		.name = lines->texts.data + method->name,
		.entries = lines->entries + method->first,
		.count = method->count,
	};
	return true;
}
