/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/event_reading.h"

#include <string.h>

#include "libsym/error.h"

struct sym_error *event_reading_thread(struct event_reading *reading,
				       const struct runtime_event *event, uint32_t *ret)
{
	return thread_table_find(&reading->profile->threads, event_reading_pid(reading, event),
				 event->tid, ret);
}

static struct sym_error *find_event(struct event_reading *reading, enum profile_event_kind kind,
				    const struct runtime_event *event, uint32_t *ret)
{
	static const struct {
		const char *name;
		enum profile_unit unit;
	} events[PROFILE_EVENT_KINDS] = {
		[PROFILE_CPU] = { "thread samples in managed code", PROFILE_UNIT_COUNT },
		[PROFILE_COUNTED] = { "thread samples outside of managed code",
				      PROFILE_UNIT_COUNT },
		[PROFILE_GC] = { "gc pauses", PROFILE_UNIT_NS },
		[PROFILE_ALLOCATION_TICKS] = { "allocations (ticks)", PROFILE_UNIT_BYTES },
		[PROFILE_ALLOCATION_SAMPLES] = { "allocations (samples)", PROFILE_UNIT_BYTES },
		[PROFILE_EXCEPTIONS] = { "exceptions", PROFILE_UNIT_COUNT },
		[PROFILE_CONTENTION] = { "contention", PROFILE_UNIT_NS },
		[PROFILE_WAITS] = { "waits", PROFILE_UNIT_NS },
		[PROFILE_POOL] = { "thread pool", PROFILE_UNIT_COUNT },
		[PROFILE_JIT] = { "jit", PROFILE_UNIT_NS },
		[PROFILE_RUNTIME_EVENTS] = { "events", PROFILE_UNIT_COUNT },
	};
	struct sym_error *error = NULL;

	if (reading->events[kind] == UINT32_MAX)
		error = profile_add_event(reading->profile,
					  event->kind && event->kind->meaning == EVENT_CPU_SAMPLE
						  ? "CPU samples"
						  : events[kind].name,
					  kind, events[kind].unit, &reading->events[kind]);
	*ret = reading->events[kind];
	return error;
}

/* The stack with one frame more, the innermost. */
static struct sym_error *add_leaf(struct event_reading *reading, uint32_t stack, const char *leaf,
				  uint32_t *ret)
{
	const struct profile_frame frame = { .name = leaf,
					     .image = "",
					     .tier = "",
					     .reason = "",
					     .kind = FRAME_KIND_EVENT,
					     .is_named = true };
	struct frame_table *table = reading->profile->frames;
	enum stack_end end = frame_table_stack_end(table, stack);
	size_t count;
	const uint32_t *frames = frame_table_stack(table, stack, &count);

	if (count > EVENT_READING_MOST_CHAIN)
		count = EVENT_READING_MOST_CHAIN;
	if (count)
		memcpy(reading->frames, frames, count * sizeof(*frames));
	/* An event without a stack is whole: nothing of it is cut. */
	if (end == STACK_END_NO_STACK)
		end = STACK_END_WHOLE;
	return frame_table_add(table, &frame, &reading->frames[count])
		       ?: frame_table_add_stack(table, reading->frames, count + 1, end, ret);
}

struct sym_error *event_reading_add(struct event_reading *reading, enum profile_event_kind kind,
				    const struct runtime_event *event, uint32_t stack,
				    const char *leaf, uint64_t weight)
{
	uint32_t number, thread;
	struct sym_error *error = find_event(reading, kind, event, &number);

	if (!error)
		error = event_reading_thread(reading, event, &thread);
	if (!error && leaf)
		error = add_leaf(reading, stack, leaf, &stack);
	if (error)
		return error;
	return profile_add_sample(
		reading->profile,
		&(struct profile_sample){ event->time_ns, weight, number, thread, stack });
}
