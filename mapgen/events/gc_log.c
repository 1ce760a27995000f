/* SPDX-License-Identifier: MIT */
#include "mapgen/events/gc_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/grow.h"
#include "libsym/error.h"
#include "mapgen/events/event_kind.h"
#include "mapgen/events/event_measures.h"
#include "mapgen/events/event_values.h"

enum {
	GENERATIONS = 5, /* with large and pinned objects */
};

/* src/coreclr/gc/gcinterface.h, gc_reason */
const char *gc_reason_text(uint32_t reason)
{
	static const char *const texts[] = {
		"small object",
		"induced",
		"low memory",
		"empty",
		"large object",
		"out of space (small objects)",
		"out of space (large objects)",
		"induced, not forced",
		"stress",
		"induced, low memory",
		"induced, compacting",
		"low memory of the host",
		"full collection after one of the young",
		"low memory of the host, blocking",
		"tuning of background collections (small objects)",
		"tuning of background collections (large objects)",
		"step of a background collection",
		"induced, aggressive",
	};

	return reason < sizeof(texts) / sizeof(*texts) ? texts[reason] : "unknown";
}

const char *gc_kind_text(uint32_t kind)
{
	return kind == GC_BACKGROUND   ? "background"
	       : kind == GC_FOREGROUND ? "foreground"
				       : "blocking";
}

void gc_log_deinit(struct gc_log *log)
{
	free(log->items);
	*log = (struct gc_log){ 0 };
}

void gc_log_begin(struct gc_log *log, int32_t pid)
{
	*log = (struct gc_log){ .items = log->items,
				.count = log->count,
				.capacity = log->capacity,
				.first = log->count,
				.pid = pid,
				.stray_pauses = log->stray_pauses,
				.stray_pause_ns = log->stray_pause_ns };
}

/* ---- collections ----------------------------------------------------------------------------- */

static struct gc_collection *current(struct gc_log *log)
{
	size_t number = log->blocking ? log->blocking : log->background;

	return number ? &log->items[number - 1] : NULL;
}

static struct gc_collection *find(struct gc_log *log, uint32_t number)
{
	for (size_t i = log->count; i > log->first && i + 8 > log->count; i--)
		if (log->items[i - 1].number == number)
			return &log->items[i - 1];
	return NULL;
}

static void place_pause(struct gc_log *log, struct gc_collection *collection, uint64_t time_ns)
{
	uint64_t begin_ns = log->is_suspended ? log->suspend_ns : time_ns;

	collection->start_ns = begin_ns;
	if (collection->kind == GC_BACKGROUND) {
		uint64_t suspended_ns = log->suspended_ns ? log->suspended_ns : time_ns;

		log->background = log->count;
		log->is_background_new = log->is_suspended;
		collection->pause_ns = log->is_suspended ? suspended_ns - begin_ns : 0;
		return;
	}
	log->blocking = log->count;
	if (log->background && log->is_background_new)
		collection->start_ns = time_ns;
	log->blocking_pause_ns = collection->start_ns;
}

static struct sym_error *take_start(struct gc_log *log, const struct runtime_event *event,
				    uint32_t stack)
{
	uint32_t number = (uint32_t)event_number(event, "Count");
	struct gc_collection *collection;

	if (log->count > log->first && log->items[log->count - 1].number == number)
		return NULL; /* each heap may send one */
	if (!grow_items((void **)&log->items, &log->capacity, log->count, sizeof(*log->items)))
		return &sym_error_no_memory;
	collection = &log->items[log->count++];
	*collection = (struct gc_collection){ .number = number,
					      .generation = (uint32_t)event_number(event, "Depth"),
					      .reason = (uint32_t)event_number(event, "Reason"),
					      .kind = (uint32_t)event_number(event, "Type"),
					      .pid = log->pid,
					      .tid = event->tid,
					      .stack = stack };
	if (log->trigger_tid) {
		collection->tid = log->trigger_tid;
		if (log->trigger_stack != UINT32_MAX)
			collection->stack = log->trigger_stack;
		log->trigger_tid = 0;
	}
	place_pause(log, collection, event->time_ns);
	return NULL;
}

static void take_end(struct gc_log *log, const struct runtime_event *event)
{
	struct gc_collection *collection = find(log, (uint32_t)event_number(event, "Count"));

	if (!collection)
		return;
	/* A collection may have become one of another generation than was planned. */
	collection->generation = (uint32_t)event_number(event, "Depth");
}

static void take_heap_stats(struct gc_log *log, const struct runtime_event *event)
{
	struct gc_collection *collection = current(log);

	if (!collection)
		return;
	collection->after_bytes = collection->promoted_bytes = 0;
	for (unsigned int i = 0; i < GENERATIONS; i++) {
		char field[32];

		snprintf(field, sizeof(field), "GenerationSize%u", i);
		collection->after_bytes += event_number(event, field);
		snprintf(field, sizeof(field), "TotalPromotedSize%u", i);
		collection->promoted_bytes += event_number(event, field);
	}
	collection->has_after = true;
	if (log->blocking || log->is_suspended)
		return;
	log->finished_background = log->background;
	log->background = 0;
}

/* The sizes before, of all generations of one heap. */
static void take_history(struct gc_log *log, const struct runtime_event *event)
{
	struct gc_collection *collection = current(log);
	struct nettrace_walk walk, inner;
	struct nettrace_value value, part;

	if (!collection && log->finished_background)
		collection = &log->items[log->finished_background - 1];
	if (!collection)
		return;
	nettrace_walk_begin(&walk, event->kind->fields, event->payload, event->payload_bytes,
			    event->kind->pointer_bytes);
	while (nettrace_walk_next(&walk, &value)) {
		if (strcmp(value.field->name, "Generations") != 0)
			continue;
		nettrace_walk_into(&walk, &value, &inner);
		while (nettrace_walk_element(&inner, &part)) {
			struct nettrace_walk fields;
			struct nettrace_value size;

			nettrace_walk_into(&inner, &part, &fields);
			if (nettrace_walk_next(&fields, &size))
				collection->before_bytes += size.number;
		}
		collection->has_before = true;
	}
}

/* ---- pauses ---------------------------------------------------------------------------------- */

static void begin_suspension(struct gc_log *log, const struct runtime_event *event)
{
	if (!event_measures_suspends_for_gc(event))
		return;
	log->is_suspended = true;
	log->suspend_tid = event->tid;
	log->suspend_ns = event->time_ns;
	log->suspended_ns = 0;
	log->blocking = 0;
	log->is_background_new = false;
}

static void add_pause(struct gc_collection *collection, uint64_t begin_ns, uint64_t end_ns,
		      bool replaces)
{
	uint64_t pause_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;

	collection->pause_ns = replaces ? pause_ns : collection->pause_ns + pause_ns;
	if (pause_ns > collection->longest_pause_ns)
		collection->longest_pause_ns = pause_ns;
	collection->pauses++;
}

static void end_suspension(struct gc_log *log, const struct runtime_event *event)
{
	if (!log->is_suspended || event->tid != log->suspend_tid)
		return;
	if (log->blocking) {
		add_pause(&log->items[log->blocking - 1], log->blocking_pause_ns, event->time_ns,
			  true);
	} else if (log->background) {
		add_pause(&log->items[log->background - 1], log->suspend_ns, event->time_ns,
			  log->is_background_new);
		if (log->items[log->background - 1].has_after)
			log->background = 0;
	} else {
		log->stray_pauses++;
		log->stray_pause_ns += event->time_ns - log->suspend_ns;
	}
	log->is_suspended = false;
	log->blocking = 0;
	log->is_background_new = false;
}

struct sym_error *gc_log_take(struct gc_log *log, const struct runtime_event *event, uint32_t stack)
{
	switch (event->kind->meaning) {
	case EVENT_GC_TRIGGERED:
		log->trigger_tid = event->tid;
		log->trigger_stack = stack;
		break;
	case EVENT_GC_SUSPEND_BEGIN:
		begin_suspension(log, event);
		break;
	case EVENT_GC_SUSPEND_END:
		if (log->is_suspended && event->tid == log->suspend_tid)
			log->suspended_ns = event->time_ns;
		break;
	case EVENT_GC_RESTART_END:
		end_suspension(log, event);
		break;
	case EVENT_GC_START:
		return take_start(log, event, stack);
	case EVENT_GC_END:
		take_end(log, event);
		break;
	case EVENT_GC_HEAP_STATS:
		take_heap_stats(log, event);
		break;
	case EVENT_GC_HEAP_HISTORY:
		take_history(log, event);
		break;
	default:
		break;
	}
	return NULL;
}
