/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as what report reads (a recording, a perf.data, folded text), and as the tables of
 * names and stacks in a recording: all ends, sums are those of the entries, and a name is found
 * only inside of what has it.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mapgen/cli/options.h"
#include "mapgen/profile/frozen_names.h"
#include "mapgen/profile/profile_open.h"
#include "mapgen/profile/stack_notes.h"
#include "mapgen/profile/stack_quality.h"
#include "mapgen/view/view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const size_t largest_input = 1 << 20;

static void expect(bool condition)
{
	if (!condition)
		abort();
}

static void check_sums(const struct profile *profile)
{
	for (size_t event = 0; event < profile->event_count; event++) {
		uint64_t count = 0, weight = 0;

		for (size_t i = 0; i < profile->entry_count; i++) {
			const struct profile_entry *entry = &profile->entries[i];

			expect(entry->event < profile->event_count &&
			       entry->thread < profile->threads.thread_count);
			count += entry->event == event ? entry->count : 0;
			weight += entry->event == event ? entry->weight : 0;
		}
		expect(count == profile->events[event].count &&
		       weight == profile->events[event].weight);
	}
}

static void write_views(const struct profile *profile)
{
	struct view view = { .profile = profile,
			     .input = "input",
			     .kind = VIEW_CPU,
			     .event = view_find_event(profile, VIEW_CPU),
			     .top = 20 };
	FILE *nowhere = fopen("/dev/null", "w");

	expect(nowhere);
	for (int kind = VIEW_SUMMARY; kind < VIEW_KINDS; kind++) {
		view.kind = (enum view_kind)kind;
		view.event = view_find_event(profile, view.kind);
		sym_error_destroy(text_view_write(&view, nowhere));
		sym_error_destroy(folded_view_write(&view, nowhere));
		sym_error_destroy(json_view_write(&view, nowhere));
	}
	sym_error_destroy(pprof_view_write(&view, nowhere));
	sym_error_destroy(speedscope_view_write(&view, nowhere));
	fclose(nowhere);
}

static void check_profile(const uint8_t *data, size_t size)
{
	/* No process and no file of this machine is what the input speaks of. */
	const struct options options = { .root = "/nonexistent" };
	const struct profile_open_opts opts = { .options = &options };
	int fd = memfd_create("input", 0);
	struct profile *profile = NULL;
	struct stack_quality quality;
	struct sym_error *error;
	char path[32];

	expect(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	error = profile_open(path, &opts, &profile);
	if (!error) {
		check_sums(profile);
		error = stack_quality_measure(profile, UINT32_MAX, &quality);
		if (!error)
			stack_quality_deinit(&quality);
		write_views(profile);
		profile_destroy(profile);
	}
	sym_error_destroy(error);
	close(fd);
}

/* A frame and the functions that are inlined into it. */
static struct sym_error *check_frame(struct frame_table *frames, uint32_t frame)
{
	size_t count = 0, known = frame_table_count(frames);
	const uint32_t *numbers;
	uint32_t stack;
	struct sym_error *error = frame_table_add_stack(frames, &frame, 1, STACK_END_WHOLE, &stack);

	if (error)
		return error;
	numbers = frame_table_stack(frames, stack, &count);
	expect(count && frame_table_at(frames, frame) == frame_table_at(frames, numbers[0]));
	for (size_t i = 0; i < count; i++)
		expect(numbers[i] < known &&
		       frame_table_at(frames, numbers[i])->is_inlined == (i > 0));
	return NULL;
}

static void check_names(const uint8_t *data, size_t size)
{
	static const uint64_t addresses[] = { 0, 0x401010, 0x7f0000000000, UINT64_MAX };
	struct frozen_names *names = NULL;
	struct frame_table *frames = NULL;
	char *text = malloc(size + 1);
	struct sym_error *error;
	uint32_t frame;

	expect(text);
	memcpy(text, data, size);
	text[size] = '\0';
	expect(!frame_table_create(&frames));
	error = frozen_names_open(text, size, &names);
	if (error)
		free(text);
	for (size_t i = 0; !error && i < sizeof(addresses) / sizeof(*addresses); i++)
		for (int32_t pid = -1; !error && pid < 3; pid++) {
			error = frozen_names_frame(names, frames, pid, i << 30, addresses[i],
						   &frame);
			if (!error && frame != FRAME_NONE)
				error = check_frame(frames, frame);
		}
	sym_error_destroy(error);
	frozen_names_close(names);
	frame_table_destroy(frames);
}

static void check_notes(const uint8_t *data, size_t size)
{
	struct stack_notes notes = { 0 };
	char *text = malloc(size + 1);
	struct sym_error *error;

	expect(text);
	memcpy(text, data, size);
	text[size] = '\0';
	error = stack_notes_read(&notes, text, size);
	for (size_t i = 0; !error && i < notes.count; i++)
		expect(notes.items[i].first_guessed + notes.items[i].guessed_count <=
		       notes.guessed_count);
	sym_error_destroy(error);
	stack_notes_deinit(&notes);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > largest_input)
		return 0;
	check_profile(data, size);
	check_names(data, size);
	check_notes(data, size);
	return 0;
}
