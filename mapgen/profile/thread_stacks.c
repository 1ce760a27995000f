/* SPDX-License-Identifier: MIT */
#include "mapgen/profile/thread_stacks.h"

#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/cli/target.h"

enum {
	MOST_FRAMES = 4096
};

DEFINE_GUARD(unwinder, struct sym_unwinder *, sym_unwinder_destroy)

struct naming {
	struct frame_table *frames;
	struct sym_resolver *resolver;
	struct sym_unwinder *unwinder;
	struct sym_result *result;
	struct sym_frame *found; /* MOST_FRAMES; innermost first */
	uint32_t *numbers;       /* of the frames; outermost first */
	uint64_t *addresses;     /* to look up; innermost first */
};

void thread_stacks_deinit(struct thread_stacks *stacks)
{
	sym_threads_destroy(stacks->threads);
	frame_table_destroy(stacks->frames);
	for (size_t i = 0; stacks->items && i < stacks->count; i++)
		free(stacks->items[i].found);
	free(stacks->items);
	*stacks = (struct thread_stacks){ 0 };
}

static struct profile_frame make_frame(const struct sym_frame *found,
				       const struct sym_answer *answer)
{
	struct profile_frame frame = {
		.name = answer->name ? answer->name : FRAME_NAME_UNKNOWN,
		.image = answer->image_path ? answer->image_path : "",
		.tier = answer->tier ? answer->tier : "",
		.reason = answer->reason ? answer->reason : "",
		.file = answer->file,
		.line = answer->line,
		.is_named = answer->status == SYM_RESOLVED,
		.is_guessed = found->flags & SYM_FRAME_IS_GUESSED,
		.quality = (enum sym_line_quality)answer->line_quality,
	};

	frame.kind = frame_kind_of(sym_source_text(answer->source), frame.tier, frame.image,
				   answer->kind);
	return frame;
}

static struct sym_error *add_frames(struct naming *naming, size_t count)
{
	struct sym_error *error = NULL;

	for (size_t i = 0; !error && i < count; i++) {
		const struct sym_answer *answer = sym_result_at(naming->result, i);
		const struct profile_frame frame = make_frame(&naming->found[i], answer);

		error = frame_table_add_answer(naming->frames, &frame, answer,
					       &naming->numbers[count - 1 - i]);
	}
	return error;
}

/* An inlined function has what was found of the next outer frame that is not inlined. */
static struct sym_error *keep_found(const struct naming *naming, size_t count,
				    struct thread_stack *item)
{
	size_t total;
	const uint32_t *frames = frame_table_stack(naming->frames, item->stack, &total);

	item->found = calloc(total + 1, sizeof(*item->found));
	if (!item->found)
		return &sym_error_no_memory;
	for (size_t i = 0; i < total; i++) {
		count -= !frame_table_at(naming->frames, frames[i])->is_inlined;
		item->found[total - 1 - i] = naming->found[count];
	}
	return NULL;
}

/* The call is the instruction before a return address. */
static struct sym_error *look_up(struct naming *naming, size_t count)
{
	for (size_t i = 0; i < count; i++)
		naming->addresses[i] =
			naming->found[i].address - !!(naming->found[i].flags & SYM_FRAME_IS_RETURN);
	return sym_resolver_resolve(naming->resolver, naming->addresses, count, naming->result);
}

static struct sym_error *name_stack(struct naming *naming, struct thread_stack *item)
{
	const struct sym_thread *thread = item->thread;
	enum sym_unwind_end end;
	size_t count;
	struct sym_error *error =
		sym_unwinder_unwind(naming->unwinder, &thread->registers, &thread->stack,
				    naming->found, MOST_FRAMES, &count, &end);

	if (!error)
		error = look_up(naming, count);
	if (!error)
		error = add_frames(naming, count);
	if (!error)
		error = frame_table_add_stack(naming->frames, naming->numbers, count,
					      (enum stack_end)end, &item->stack);
	return error ? error : keep_found(naming, count, item);
}

static struct sym_error *name_threads(struct naming *naming, struct thread_stacks *stacks)
{
	struct sym_error *error = NULL;

	stacks->count = sym_threads_count(stacks->threads);
	stacks->items = calloc(stacks->count + 1, sizeof(*stacks->items));
	if (!stacks->items)
		return &sym_error_no_memory;
	for (size_t i = 0; !error && i < stacks->count; i++) {
		struct thread_stack *item = &stacks->items[i];

		item->thread = sym_threads_at(stacks->threads, i);
		item->stack = STACK_NONE;
		if (!item->thread->reason)
			error = name_stack(naming, item);
	}
	return error;
}

/* The threads first: what was compiled by then is read afterwards. */
static struct sym_error *take(struct sym_snapshot *snapshot, uint32_t fields,
			      struct thread_stacks *stacks)
{
	struct sym_resolver *resolver GUARDED(resolver) = NULL;
	struct sym_unwinder *unwinder GUARDED(unwinder) = NULL;
	struct sym_result *result GUARDED(result) = NULL;
	struct sym_frame *found AUTO_FREE = calloc(MOST_FRAMES, sizeof(*found));
	uint32_t *numbers AUTO_FREE = calloc(MOST_FRAMES, sizeof(*numbers));
	uint64_t *addresses AUTO_FREE = calloc(MOST_FRAMES, sizeof(*addresses));
	struct sym_error *error = found && numbers && addresses ? NULL : &sym_error_no_memory;
	struct naming naming;

	if (!error)
		error = sym_threads_capture(snapshot, 0, &stacks->threads);
	if (!error)
		error = frame_table_create(&stacks->frames);
	if (!error)
		error = sym_resolver_create(snapshot, &resolver);
	if (!error)
		error = sym_unwinder_create(resolver, &unwinder);
	if (!error)
		error = sym_result_create(&result);
	if (!error)
		error = sym_result_set_fields(result, fields);
	if (error)
		return error;
	naming = (struct naming){ stacks->frames, resolver, unwinder, result,
				  found,          numbers,  addresses };
	return name_threads(&naming, stacks);
}

struct sym_error *thread_stacks_take(struct sym_snapshot *snapshot, uint32_t fields,
				     struct thread_stacks *ret)
{
	struct thread_stacks stacks = { 0 };
	struct sym_error *error = take(snapshot, fields, &stacks);

	if (error)
		thread_stacks_deinit(&stacks);
	else
		*ret = stacks;
	return error;
}
