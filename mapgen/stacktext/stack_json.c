/* SPDX-License-Identifier: MIT */
/*
 * bpftrace -f json: a map, or what is printed, is an object on one line. A stack
 * is a string, or a part of one, whose lines end in an escaped newline; a key of
 * several parts is one string, with commas between them:
 *
 *   {"type": "map", "data": {"@": {"12,\\n    0x7fa5...\\n    main+12\\n,0x7fa5...": 1}}}
 */
#include "mapgen/stacktext/stack_forms.h"

/* The next string, without its quotes, and the place behind it; false when there is none. */
static bool next_string(struct stack_span *rest, struct stack_span *ret)
{
	const char *open = memchr(rest->at, '"', stack_left(rest)), *at;

	if (!open)
		return false;
	for (at = open + 1; at < rest->end && *at != '"'; at++)
		at += *at == '\\' && rest->end - at > 1;
	if (at == rest->end)
		return false;
	*ret = (struct stack_span){ open + 1, at };
	rest->at = at + 1;
	return true;
}

/* NULL: there is none. The 'n' behind an escaped backslash is a letter. */
static const char *find_newline(struct stack_span string)
{
	const char *at;

	while ((at = memchr(string.at, '\\', stack_left(&string)))) {
		if (string.end - at < 2)
			return NULL;
		if (at[1] == 'n')
			return at;
		string.at = at + 2;
	}
	return NULL;
}

static void skip_blanks(struct stack_span *span)
{
	for (stack_skip_blanks(span); STACK_BEGINS(span, "\\t"); stack_skip_blanks(span))
		span->at += 2;
}

/* A line of a stack. */
static void frame_line(struct stack_text *text, const char *line, struct stack_span rest,
		       bool is_key)
{
	struct stack_number number;

	skip_blanks(&rest);
	if (rest.at == rest.end || !stack_read_number(&rest, &number)) {
		text->in_stack = rest.at < rest.end;
		return;
	}
	if (rest.at < rest.end) {
		stack_skip_blanks(&rest);
		stack_bpftrace_perf_frame(text, line, &number, rest, STACK_FORM_JSON);
	} else if (is_key || stack_is_address(&number)) {
		stack_report_number(text, line, &number, STACK_FORM_JSON, text->in_stack);
	}
	text->in_stack = !stack_is_kernel(number.value);
}

/* The text between two newlines is a line of a stack, or parts of a key between two stacks. */
static void read_string(struct stack_text *text, const char *line, struct stack_span rest,
			bool is_key)
{
	bool is_first = true;

	text->in_stack = false;
	for (const char *newline;; rest.at = newline + 2, is_first = false) {
		struct stack_span piece = rest;

		newline = find_newline(rest);
		if (newline)
			piece.end = newline;
		if (!is_first && newline && !STACK_BEGINS(&piece, ",")) {
			frame_line(text, line, piece, is_key);
			continue;
		}
		text->in_stack = false;
		if (is_key)
			stack_key_addresses(text, line, piece, STACK_FORM_JSON_BARE);
		if (!newline)
			return;
	}
}

bool stack_json_line(struct stack_text *text, const char *line, struct stack_span rest)
{
	struct stack_span string;

	if (!STACK_BEGINS(&rest, "{\"type\":"))
		return false;
	while (next_string(&rest, &string)) {
		stack_skip_blanks(&rest);
		read_string(text, line, string, STACK_BEGINS(&rest, ":"));
	}
	return true;
}
