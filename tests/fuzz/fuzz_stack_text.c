/* SPDX-License-Identifier: MIT */
/* Arbitrary bytes as stack text, in pieces of any size: without names the output equals the input;
 * the frames of a line lie in it, in order and without overlaps. */
#include <stdlib.h>

#include "tests/support/stack_text_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct places {
	size_t size_bytes;
	size_t end;
};

static void check_frame(void *context, const struct stack_frame *frame)
{
	struct places *places = context;

	if (frame->start < places->end || frame->end < frame->start ||
	    frame->end > places->size_bytes)
		abort();
	places->end = frame->end;
	if (frame->image_start == frame->image_end)
		return;
	if (frame->image_end < frame->image_start || frame->image_end > places->size_bytes ||
	    (frame->image_start < frame->end && frame->image_end > frame->start))
		abort();
	if (!frame->fill_image)
		return;
	if (frame->image_start < frame->end)
		abort();
	places->end = frame->image_end;
}

static void check_lines(const char *text, size_t size_bytes)
{
	struct places places;
	struct stack_text state;
	const char *end = text + size_bytes;

	stack_text_init(&state, check_frame, &places);
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t length = (size_t)((newline ? newline : end) - text);
		/* A copy of the exact size, so that a sanitizer detects a read past the end. */
		char *line = malloc(length + 1);

		memcpy(line, text, length);
		places = (struct places){ .size_bytes = length };
		stack_text_line(&state, line, length);
		free(line);
		text += length + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stack_text_run run = { .no_names = true, .piece_bytes = size ? data[0] : 0 };

	check_lines((const char *)data, size);
	run.no_default = size && data[size - 1] & 1;
	stack_text_run(&run, (const char *)data, size);
	if (run.failed || run.output.size_bytes != size ||
	    (size && memcmp(run.output.data, data, size)))
		abort();
	stack_text_run_deinit(&run);
	run = (struct stack_text_run){ .piece_bytes = size ? data[size / 2] : 0, .name = "" };
	stack_text_run(&run, (const char *)data, size);
	if (run.failed)
		abort();
	stack_text_run_deinit(&run);
	return 0;
}
