/* SPDX-License-Identifier: MIT */
/* Handling of a found frame, shared by several readers of stack_forms.h. */
#include "mapgen/stacktext/stack_forms.h"

void stack_report(struct stack_text *text, const struct stack_frame *frame)
{
	if (!stack_is_kernel(frame->value))
		text->handler(text->context, frame);
}

void stack_report_number(struct stack_text *text, const char *line,
			 const struct stack_number *number, enum stack_form form, bool is_return)
{
	struct stack_frame frame = {
		.value = number->value,
		.start = (size_t)(number->start - line),
		.end = (size_t)(number->end - line),
		.form = form,
		.is_return = is_return,
	};

	stack_report(text, &frame);
}

bool stack_read_image(struct stack_span rest, const char *line, struct stack_frame *frame)
{
	if (stack_left(&rest) < 3 || *rest.at != '(' || rest.end[-1] != ')')
		return false;
	frame->image_start = (size_t)(rest.at + 1 - line);
	frame->image_end = (size_t)(rest.end - 1 - line);
	return true;
}

bool stack_bpftrace_perf_frame(struct stack_text *text, const char *line,
			       const struct stack_number *number, struct stack_span rest,
			       enum stack_form form)
{
	struct stack_number again;
	struct stack_frame frame = { .form = form, .fill_image = true };

	if (!stack_read_number(&rest, &again) || !again.prefixed || again.value != number->value ||
	    !STACK_BEGINS(&rest, " ([unknown])") || stack_left(&rest) != STACK_UNKNOWN_BYTES + 3)
		return false;
	frame.value = again.value;
	frame.start = (size_t)(again.start - line);
	frame.end = (size_t)(again.end - line);
	rest.at++;
	stack_read_image(rest, line, &frame);
	frame.is_return = text->in_stack;
	stack_report(text, &frame);
	return true;
}

/* The blank before the last "[unknown]"; the file that perf prints behind it may have brackets. */
static const char *find_unknown(struct stack_span rest)
{
	const char *open;

	while ((open = memrchr(rest.at, '[', stack_left(&rest))) && open > rest.at) {
		struct stack_span word = { open, rest.end };

		if (open[-1] == ' ' && STACK_BEGINS(&word, "[unknown]"))
			return open - 1;
		if (open[-1] != '(')
			return NULL;
		rest.end = open;
	}
	return NULL;
}

bool stack_unknown_inside(struct stack_span rest, struct stack_number *ret,
			  struct stack_span *behind_ret)
{
	const char *found = find_unknown(rest);
	struct stack_span number = { found, found };

	if (!found)
		return false;
	while (number.at > rest.at && !stack_is_blank(number.at[-1]))
		number.at--;
	*behind_ret = (struct stack_span){ found + 1 + STACK_UNKNOWN_BYTES, rest.end };
	return stack_read_number(&number, ret) && number.at == found &&
	       stack_at_end_of_word(behind_ret);
}
