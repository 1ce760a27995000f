/* SPDX-License-Identifier: MIT */
/*
 * The output of strace -k for a system call: a line for each frame, with the offset into the file;
 * the thread stands at the start of the call's line where there are several.
 *
 *   3373  read(13, "0-1\n", 4096)  = 4           [pid  3373] read(13, "0-1\n", 4096)  = 4
 *   3373<.NET TP Worker> read(13, "0-1\n", 4096)  = 4
 *    > /usr/lib/libc.so.6(read+0x4e) [0xf805e]
 *    > /memfd:doublemapper (deleted)() [0x140d42]
 */
#include "mapgen/stacktext/stack_forms.h"

/* Only remembered: another line that begins with a number says nothing about frames of other forms.
 * Calls of a single thread have no number. */
void stack_strace_call(struct stack_text *text, struct stack_span rest)
{
	int32_t id;

	if (STACK_BEGINS(&rest, "[pid ")) {
		rest.at += sizeof("[pid ") - 1;
		stack_skip_blanks(&rest);
	}
	text->traced_thread =
		stack_read_id(&rest, &id) && rest.at < rest.end && strchr(" ]<", *rest.at) ? id : 0;
}

bool stack_strace_frame(struct stack_text *text, const char *line, struct stack_span rest)
{
	static const char empty[] = "()";
	struct stack_frame frame = { .form = STACK_FORM_HEX, .is_return = text->in_stack };
	struct stack_span offset;
	struct stack_number number;

	/* "> /file(name+0x1f) [0x1af]" */
	if (!STACK_BEGINS(&rest, "> /") || rest.end[-1] != ']')
		return false;
	offset = (struct stack_span){ memrchr(rest.at, '[', stack_left(&rest)), rest.end };
	if (!offset.at || offset.at - rest.at < 6 || offset.at[-1] != ' ' || offset.at[-2] != ')')
		return false;
	offset.at++;
	if (!stack_read_number(&offset, &number) || !number.prefixed || offset.at != rest.end - 1)
		return false;
	text->in_stack = true;
	rest.end = number.start - 2;
	if (memcmp(rest.end - 2, empty, 2) != 0)
		return true;
	text->owner =
		(struct stack_owner){ text->traced_thread ? STACK_OWNER_THREAD : STACK_OWNER_NONE,
				      text->traced_thread };
	frame.value = number.value;
	frame.start = frame.end = (size_t)(rest.end - 1 - line);
	frame.image_start = (size_t)(rest.at + 2 - line);
	frame.image_end = (size_t)(rest.end - 2 - line);
	text->handler(text->context, &frame);
	return true;
}
