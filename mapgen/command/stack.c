/* SPDX-License-Identifier: MIT */
/*
 * The command stack: what each thread of a process does at this moment. Threads with equal stacks
 * are shown once, with their number.
 *
 *   Store.Web (PID 4711): 24 threads in 6 groups, each thread held for at most 0.2 ms
 *   4 threads  .NET TP Worker  sleeping
 *       __futex_abstimed_wait_common    libc.so.6
 *       Store.Reserve                   Store.Web.dll
 *
 * Equal are stacks whose functions have the same names, of threads with the same name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/base/utf8.h"
#include "libsym/error.h"
#include "mapgen/cli/command.h"
#include "mapgen/cli/json_output.h"
#include "mapgen/cli/message.h"
#include "mapgen/cli/process_name.h"
#include "mapgen/cli/target.h"
#include "mapgen/profile/thread_stacks.h"
#include "mapgen/view/frame_text.h"

enum {
	NAME_COLUMNS = 48,
	TEXT_LIMIT = 64 << 20,
};

struct shown_thread {
	const struct thread_stack *item;
	char *text; /* the lines of its frames: threads with equal ones make a group */
};

struct group {
	const struct shown_thread *first;
	size_t count;
};

/* ---- text ------------------------------------------------------------------------------------ */

static const char *origin_of(const struct profile_frame *frame)
{
	if (frame->is_inlined)
		return "(inlined)";
	return *frame->image ? path_file_name(frame->image) : frame_text_kind(frame);
}

static void append_frame(struct buf *text, struct buf *name, const struct profile_frame *frame,
			 enum frame_names names)
{
	buf_clear(name);
	if (frame->is_guessed)
		buf_append_char(name, '~');
	frame_text_fit(name, frame, names, NAME_COLUMNS);
	buf_append_char(name, '\0');
	if (name->failure)
		text->failure = name->failure;
	else
		buf_printf(text, "    %s%*s  %s", name->data,
			   utf8_padding(name->data, NAME_COLUMNS), "", origin_of(frame));
	if (frame->line)
		buf_append_string(text, "  ");
	frame_text_place(text, frame);
	buf_append_char(text, '\n');
}

/* Innermost first. NULL for want of memory. */
static char *make_text(const struct thread_stacks *stacks, const struct thread_stack *item,
		       enum frame_names names)
{
	struct buf text, name;
	const uint32_t *frames;
	enum stack_end end;
	size_t count;

	if (item->stack == STACK_NONE)
		return message_format("    no stack: %s\n", item->thread->reason);
	buf_init(&text, TEXT_LIMIT);
	buf_init(&name, TEXT_LIMIT);
	frames = frame_table_stack(stacks->frames, item->stack, &count);
	for (size_t i = count; i-- > 0;)
		append_frame(&text, &name, frame_table_at(stacks->frames, frames[i]), names);
	end = frame_table_stack_end(stacks->frames, item->stack);
	if (end != STACK_END_WHOLE)
		buf_printf(&text, "    (the stack ends here: %s)\n", stack_end_text(end));
	buf_append_char(&text, '\0');
	buf_deinit(&name);
	if (text.failure) {
		buf_deinit(&text);
		return NULL;
	}
	return buf_steal(&text, &count);
}

static const char *state_text(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
		return "sleeping";
	case 'D':
		return "in uninterruptible sleep";
	case 'T':
	case 't':
		return "stopped";
	case 'Z':
	case 'X':
		return "ended";
	default:
		return "";
	}
}

static int compare_shown(const void *left, const void *right)
{
	const struct shown_thread *a = left, *b = right;
	int order = strcmp(a->text, b->text);

	order = order ? order : strcmp(a->item->thread->name, b->item->thread->name);
	order = order ? order : a->item->thread->state - b->item->thread->state;
	return order ? order : a->item->thread->tid - b->item->thread->tid;
}

static bool is_same_group(const struct shown_thread *a, const struct shown_thread *b)
{
	return !strcmp(a->text, b->text) && a->item->thread->state == b->item->thread->state &&
	       !strcmp(a->item->thread->name, b->item->thread->name);
}

/* Most threads first, then by thread. */
static int compare_groups(const void *left, const void *right)
{
	const struct group *a = left, *b = right;

	if (a->count != b->count)
		return a->count > b->count ? -1 : 1;
	return a->first->item->thread->tid - b->first->item->thread->tid;
}

static void print_group(const struct group *group)
{
	const struct sym_thread *thread = group->first->item->thread;
	char *name AUTO_FREE = message_printable(thread->name);

	if (group->count == 1)
		printf("thread %" PRId32, thread->tid);
	else
		printf("%zu threads", group->count);
	if (name && *name)
		printf("  %s", name);
	if (*state_text(thread->state))
		printf("  %s", state_text(thread->state));
	printf("\n%s", group->first->text);
}

static void print_title(const struct options *options, const struct sym_snapshot *snapshot,
			const struct thread_stacks *stacks, size_t group_count)
{
	const struct sym_process_info *process = sym_snapshot_process(snapshot);
	char *name AUTO_FREE = options->core ? NULL : process_name_of(process->pid);
	uint64_t longest_ns = 0;

	for (size_t i = 0; i < stacks->count; i++)
		if (stacks->items[i].thread->held_ns > longest_ns)
			longest_ns = stacks->items[i].thread->held_ns;
	printf("%s (PID %" PRId32 "): %zu thread%s in %zu group%s", name ? name : process->comm,
	       process->pid, stacks->count, stacks->count == 1 ? "" : "s", group_count,
	       group_count == 1 ? "" : "s");
	if (!options->core)
		printf(", each thread held for at most %.2f ms", (double)longest_ns / 1e6);
	putchar('\n');
}

static void print_groups(const struct options *options, const struct sym_snapshot *snapshot,
			 const struct thread_stacks *stacks, struct shown_thread *shown,
			 struct group *groups)
{
	size_t count = 0;

	if (stacks->count)
		qsort(shown, stacks->count, sizeof(*shown), compare_shown);
	for (size_t i = 0; i < stacks->count; i++) {
		if (!i || !is_same_group(&shown[i - 1], &shown[i]))
			groups[count++].first = &shown[i];
		groups[count - 1].count++;
	}
	if (count)
		qsort(groups, count, sizeof(*groups), compare_groups);
	print_title(options, snapshot, stacks, count);
	for (size_t i = 0; i < count; i++)
		print_group(&groups[i]);
}

static int print_text(const struct options *options, const struct sym_snapshot *snapshot,
		      const struct thread_stacks *stacks)
{
	struct shown_thread *shown = calloc(stacks->count + 1, sizeof(*shown));
	struct group *groups AUTO_FREE = calloc(stacks->count + 1, sizeof(*groups));
	bool is_whole = shown && groups;

	for (size_t i = 0; is_whole && i < stacks->count; i++) {
		shown[i].item = &stacks->items[i];
		shown[i].text =
			make_text(stacks, &stacks->items[i], (enum frame_names)options->names);
		is_whole = shown[i].text;
	}
	if (is_whole)
		print_groups(options, snapshot, stacks, shown, groups);
	else
		message("out of memory");
	for (size_t i = 0; shown && i < stacks->count; i++)
		free(shown[i].text);
	free(shown);
	return is_whole ? EXIT_DONE : EXIT_FAILED;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *frame_json(const struct profile_frame *frame, const struct sym_frame *found)
{
	return json_pack(
		"{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:o, s:I, s:b}", "address",
		json_output_address(found->address), "return_address",
		(found->flags & SYM_FRAME_IS_RETURN) != 0, "name", json_output_text(frame->name),
		"image", json_output_text(frame->image), "tier",
		json_output_text(*frame->tier ? frame->tier : NULL), "kind",
		json_output_text(frame_kind_text(frame->kind)), "reason",
		json_output_text(*frame->reason ? frame->reason : NULL), "named", frame->is_named,
		"guessed", frame->is_guessed, "inlined", frame->is_inlined, "file",
		json_output_text(*frame->file ? frame->file : NULL), "line",
		(json_int_t)frame->line, "approximate", frame->quality == SYM_LINE_NEAREST);
}

static json_t *frames_json(const struct thread_stacks *stacks, const struct thread_stack *item)
{
	const uint32_t stack = item->stack;
	json_t *array = json_array();
	const uint32_t *frames;
	size_t count;

	if (stack == STACK_NONE)
		return array;
	frames = frame_table_stack(stacks->frames, stack, &count);
	for (size_t i = count; i-- > 0;)
		json_array_append_new(array, frame_json(frame_table_at(stacks->frames, frames[i]),
							&item->found[count - 1 - i]));
	return array;
}

static json_t *thread_json(const struct thread_stacks *stacks, const struct thread_stack *item)
{
	const struct sym_thread *thread = item->thread;
	const char state[] = { thread->state, '\0' };
	enum stack_end end = item->stack == STACK_NONE
				     ? STACK_END_NO_STACK
				     : frame_table_stack_end(stacks->frames, item->stack);

	return json_pack("{s:I, s:o, s:o, s:I, s:b, s:o, s:o, s:o}", "tid", (json_int_t)thread->tid,
			 "name", json_output_text(thread->name), "state", json_output_text(state),
			 "held_us", (json_int_t)(thread->held_ns / 1000), "whole",
			 end == STACK_END_WHOLE, "end", json_output_text(stack_end_text(end)),
			 "reason", json_output_text(thread->reason), "frames",
			 frames_json(stacks, item));
}

static int print_json(const struct sym_snapshot *snapshot, const struct thread_stacks *stacks)
{
	json_t *threads = json_array();

	for (size_t i = 0; i < stacks->count; i++)
		json_array_append_new(threads, thread_json(stacks, &stacks->items[i]));
	return json_output_print(json_pack("{s:I, s:o}", "pid",
					   (json_int_t)sym_snapshot_process(snapshot)->pid,
					   "threads", threads))
		       ? EXIT_DONE
		       : EXIT_FAILED;
}

int stack_run(const struct options *options)
{
	struct sym_snapshot *snapshot GUARDED(snapshot) = NULL;
	struct thread_stacks stacks;
	struct sym_error *error;
	int code;

	if (options->core ? options->pid || options->operand_count
			  : !options_have_one_pid(options, "stack")) {
		if (options->core)
			message("--core does not go with a PID");
		return EXIT_USAGE;
	}
	snapshot = target_open(options, NULL);
	if (!snapshot)
		return EXIT_FAILED;
	error = thread_stacks_take(
		snapshot, options->lines ? SYM_FIELD_LINES | SYM_FIELD_INLINED : 0, &stacks);
	if (!message_error(error))
		return EXIT_FAILED;
	target_say_asked(snapshot);
	code = options->json ? print_json(snapshot, &stacks)
			     : print_text(options, snapshot, &stacks);
	thread_stacks_deinit(&stacks);
	return code;
}
