/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/error.h"
#include "mapgen/profile/event_report.h"

enum {
	MOST_EVENTS = 255,
	STACK_BITS = 32,
	THREAD_BITS = 24,
};

void profile_destroy(struct profile *profile)
{
	if (!profile)
		return;
	frame_table_destroy(profile->frames);
	thread_table_deinit(&profile->threads);
	for (size_t i = 0; i < profile->event_count; i++)
		free(profile->events[i].name);
	free(profile->events);
	free(profile->entries);
	free(profile->samples);
	free(profile->spans);
	address_table_deinit(&profile->by_key);
	free(profile->title);
	free(profile->runtime);
	free(profile->losses.line_reason);
	free(profile->losses.cut);
	event_report_destroy(profile->report);
	free(profile);
}

DEFINE_GUARD(profile, struct profile *, profile_destroy)

struct sym_error *profile_create(struct profile **ret)
{
	struct profile *profile GUARDED(profile) = calloc(1, sizeof(*profile));
	struct sym_error *error;

	if (!profile)
		return &sym_error_no_memory;
	error = frame_table_create(&profile->frames);
	if (!error)
		*ret = STEAL(profile);
	return error;
}

struct sym_error *profile_add_event(struct profile *profile, const char *name,
				    enum profile_event_kind kind, enum profile_unit unit,
				    uint32_t *ret)
{
	struct profile_event *events;
	char *copy;

	if (profile->event_count == MOST_EVENTS)
		return sym_error_create(SYM_ERROR_LIMIT, "more than %d events", MOST_EVENTS);
	events = reallocarray(profile->events, profile->event_count + 1, sizeof(*events));
	if (!events)
		return &sym_error_no_memory;
	profile->events = events;
	copy = strdup(name);
	if (!copy)
		return &sym_error_no_memory;
	*ret = (uint32_t)profile->event_count++;
	events[*ret] = (struct profile_event){
		.name = copy, .kind = kind, .unit = unit, .is_time = unit == PROFILE_UNIT_NS
	};
	return NULL;
}

/* Event, thread and stack in 64 bits; never 0. */
static uint64_t key_of(uint32_t event, uint32_t thread, uint32_t stack)
{
	return (uint64_t)(event + 1) << (STACK_BITS + THREAD_BITS) |
	       (uint64_t)thread << STACK_BITS | stack;
}

static struct sym_error *find_entry(struct profile *profile, uint32_t event, uint32_t thread,
				    uint32_t stack, struct profile_entry **ret)
{
	struct range_slot *slot =
		address_table_slot(&profile->by_key, key_of(event, thread, stack));

	if (!slot)
		return &sym_error_no_memory;
	if (slot->value) {
		*ret = &profile->entries[(uintptr_t)slot->value - 1];
		return NULL;
	}
	if (!grow_items((void **)&profile->entries, &profile->entry_capacity, profile->entry_count,
			sizeof(*profile->entries)))
		return &sym_error_no_memory;
	*ret = &profile->entries[profile->entry_count++];
	**ret = (struct profile_entry){ .event = event, .thread = thread, .stack = stack };
	slot->value = (void *)(uintptr_t)profile->entry_count;
	return NULL;
}

struct sym_error *profile_add(struct profile *profile, uint32_t event, uint32_t thread,
			      uint32_t stack, uint64_t count, uint64_t weight)
{
	struct profile_entry *entry;
	struct sym_error *error = find_entry(profile, event, thread, stack, &entry);

	if (error)
		return error;
	entry->count += count;
	entry->weight += weight;
	if (weight > entry->longest)
		entry->longest = weight;
	profile->events[event].count += count;
	profile->events[event].weight += weight;
	return NULL;
}

struct sym_error *profile_add_sample(struct profile *profile, const struct profile_sample *sample)
{
	if (profile->keeps_samples) {
		if (!grow_items((void **)&profile->samples, &profile->sample_capacity,
				profile->sample_count, sizeof(*profile->samples)))
			return &sym_error_no_memory;
		profile->samples[profile->sample_count++] = *sample;
	}
	return profile_add(profile, sample->event, sample->thread, sample->stack, 1,
			   sample->weight);
}

struct sym_error *profile_add_span(struct profile *profile, const struct profile_span *span)
{
	if (!profile->keeps_spans)
		return NULL;
	if (!grow_items((void **)&profile->spans, &profile->span_capacity, profile->span_count,
			sizeof(*profile->spans)))
		return &sym_error_no_memory;
	profile->spans[profile->span_count++] = *span;
	return NULL;
}

uint32_t profile_find_event(const struct profile *profile, enum profile_event_kind kind)
{
	uint32_t found = UINT32_MAX;

	for (size_t i = 0; i < profile->event_count; i++)
		if (profile->events[i].kind == kind &&
		    (found == UINT32_MAX ||
		     profile->events[i].count > profile->events[found].count))
			found = (uint32_t)i;
	return found;
}

double profile_seconds(const struct profile *profile)
{
	return profile->end_ns > profile->begin_ns
		       ? (double)(profile->end_ns - profile->begin_ns) / 1e9
		       : 0;
}

/*
 * src/libraries/System.Private.CoreLib/src/System/Threading/LowLevelLifoSemaphore.cs: workers
 * of the portable thread pool (.NET 6 on) wait in it, and nothing else does. Up to .NET 5 they wait
 * in ThreadpoolMgr::WorkerThreadStart of libcoreclr.so, in a semaphore of the same kind.
 */
bool profile_is_parked(const struct profile *profile, uint32_t stack)
{
	size_t count;
	const uint32_t *frames = frame_table_stack(profile->frames, stack, &count);

	for (size_t i = count; i > 0; i--) {
		const struct profile_frame *frame = frame_table_at(profile->frames, frames[i - 1]);

		if (strstr(frame->name, "LowLevelLifoSemaphore::Wait") ||
		    strstr(frame->name, "UnfairSemaphore::Wait") ||
		    strstr(frame->name, "CLRLifoSemaphore::Wait"))
			return true;
	}
	return false;
}
