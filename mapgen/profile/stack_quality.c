/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/stack_quality.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/base/path.h"
#include "libsym/error.h"

/* Functions in which a thread begins, of glibc, musl, the kernel, Go and the JVM. */
static bool is_beginning(const char *name)
{
	static const char *const names[] = { "_start",
					     "start_thread",
					     "clone",
					     "clone3",
					     "__clone",
					     "__clone3",
					     "__clone_internal",
					     "thread_start",
					     "ret_from_fork",
					     "ret_from_fork_asm",
					     "__libc_start_main",
					     "__libc_start_call_main",
					     "runtime.goexit",
					     "runtime.goexit.abi0",
					     "runtime.mcall",
					     "runtime.rt0_go",
					     "_dl_start_user",
					     "secondary_startup_64_no_verify",
					     "secondary_startup_64",
					     "cpu_startup_entry" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t length = strlen(names[i]);

		if (!strncmp(name, names[i], length) && (!name[length] || name[length] == '@'))
			return true;
	}
	return false;
}

static bool is_libc(const char *image)
{
	const char *name = path_file_name(image);

	return !strncmp(name, "libc.so", 7) || !strncmp(name, "libpthread", 10) ||
	       !strncmp(name, "ld-musl", 7) || !strncmp(name, "libc-", 5);
}

/* The C library is often stripped: a chain that comes back to it after other files has come to
 * where the thread began. */
static bool comes_back(const struct profile *profile, const uint32_t *frames, size_t count)
{
	if (!is_libc(frame_table_at(profile->frames, frames[0])->image))
		return false;
	for (size_t i = 1; i < count; i++) {
		const struct profile_frame *frame = frame_table_at(profile->frames, frames[i]);

		if (frame->kind != FRAME_KIND_KERNEL && !is_libc(frame->image))
			return true;
	}
	return false;
}

/* Does it reach where the thread began? The unwinder says so; of chains of frame pointers the
 * outermost function tells. */
static bool stack_quality_is_whole(const struct profile *profile, uint32_t stack)
{
	enum stack_end end = frame_table_stack_end(profile->frames, stack);
	const struct profile_frame *outermost;
	const uint32_t *frames;
	size_t count;

	if (end != STACK_END_NOT_SAID)
		return end == STACK_END_WHOLE;
	frames = frame_table_stack(profile->frames, stack, &count);
	if (!count)
		return false;
	outermost = frame_table_at(profile->frames, frames[0]);
	return outermost->kind == FRAME_KIND_KERNEL || is_beginning(outermost->name) ||
	       comes_back(profile, frames, count);
}

static struct sym_error *add_cause(struct quality_cause **causes, size_t *capacity, size_t *count,
				   const struct quality_cause *cause)
{
	for (size_t i = 0; i < *count; i++) {
		struct quality_cause *known = &(*causes)[i];

		if (strcmp(known->image, cause->image) || strcmp(known->reason, cause->reason))
			continue;
		known->count += cause->count;
		return NULL;
	}
	if (!grow_items((void **)causes, capacity, *count, sizeof(**causes)))
		return &sym_error_no_memory;
	(*causes)[(*count)++] = *cause;
	return NULL;
}

static struct sym_error *measure_stack(const struct profile *profile,
				       const struct profile_entry *entry,
				       struct stack_quality *quality)
{
	size_t count;
	const uint32_t *frames = frame_table_stack(profile->frames, entry->stack, &count);
	enum stack_end end = frame_table_stack_end(profile->frames, entry->stack);
	struct quality_cause cause = { .image = "", .count = entry->count };

	quality->samples += entry->count;
	if (stack_quality_is_whole(profile, entry->stack)) {
		quality->whole_samples += entry->count;
		return NULL;
	}
	cause.reason = stack_end_text(end);
	if (count) {
		cause.image = frame_table_at(profile->frames, frames[0])->image;
		cause.kind = frame_table_at(profile->frames, frames[0])->kind;
	}
	return add_cause(&quality->cut, &quality->cut_capacity, &quality->cut_count, &cause);
}

static struct sym_error *measure_frame(const struct profile *profile, uint32_t number,
				       uint64_t count, struct stack_quality *quality)
{
	const struct profile_frame *frame = frame_table_at(profile->frames, number);
	const struct quality_cause cause = { frame->image, frame->reason, frame->kind, count };

	quality->frames[frame->kind] += count;
	if (!frame->is_named)
		return add_cause(&quality->unnamed, &quality->unnamed_capacity,
				 &quality->unnamed_count, &cause);
	quality->named_frames[frame->kind] += count;
	return NULL;
}

static int compare(const void *left, const void *right)
{
	const struct quality_cause *a = left, *b = right;
	int order;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	order = strcmp(a->image, b->image);
	return order ? order : strcmp(a->reason, b->reason);
}

static struct sym_error *measure(const struct profile *profile, uint32_t event, uint64_t *counts,
				 struct stack_quality *quality)
{
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < profile->entry_count; i++) {
		const struct profile_entry *entry = &profile->entries[i];
		bool has_guessed = false;
		const uint32_t *frames;
		size_t count;

		if (event != UINT32_MAX && entry->event != event)
			continue;
		error = measure_stack(profile, entry, quality);
		frames = frame_table_stack(profile->frames, entry->stack, &count);
		for (size_t k = 0; k < count; k++) {
			counts[frames[k]] += entry->count;
			has_guessed |= frame_table_at(profile->frames, frames[k])->is_guessed;
		}
		quality->guessed_samples += has_guessed ? entry->count : 0;
	}
	for (size_t i = 0; !error && i < frame_table_count(profile->frames); i++)
		if (counts[i])
			error = measure_frame(profile, (uint32_t)i, counts[i], quality);
	return error;
}

struct sym_error *stack_quality_measure(const struct profile *profile, uint32_t event,
					struct stack_quality *ret)
{
	uint64_t *counts AUTO_FREE =
		calloc(frame_table_count(profile->frames) + 1, sizeof(*counts));
	struct stack_quality quality = { 0 };
	struct sym_error *error =
		counts ? measure(profile, event, counts, &quality) : &sym_error_no_memory;

	if (error) {
		stack_quality_deinit(&quality);
		return error;
	}
	if (quality.cut_count)
		qsort(quality.cut, quality.cut_count, sizeof(*quality.cut), compare);
	if (quality.unnamed_count)
		qsort(quality.unnamed, quality.unnamed_count, sizeof(*quality.unnamed), compare);
	*ret = quality;
	return NULL;
}

void stack_quality_deinit(struct stack_quality *quality)
{
	free(quality->cut);
	free(quality->unnamed);
	*quality = (struct stack_quality){ 0 };
}
