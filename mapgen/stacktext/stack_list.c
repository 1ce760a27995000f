/* SPDX-License-Identifier: MIT */
/*
 * Lines that hold several frames.
 *
 *     folded          web;main;0x7f12345678;[unknown] 42
 *     key of a map    @[0x7f12345678, 0x7f87654321]: 42         bpftrace; may take several lines
 *     babeltrace2     [12:00:00.1] ... { vpid = 27737, ip = 0x7F12345678 }, { ... }
 *     list            0x7f12345678 0x7f87654321, 0x7f00001234
 *
 * The innermost frame of a stack is an instruction, every other one is the address behind a call.
 * Only a folded line and an array of babeltrace2 say which frame is the innermost.
 */
#include "mapgen/stacktext/stack_forms.h"

static bool is_count(struct stack_span word)
{
	while (word.at < word.end && stack_is_digit(*word.at))
		word.at++;
	return word.at == word.end;
}

/* The text after a frame distinguishes a caller from the innermost frame: nothing, the kernel, or
 * BCC's "-". */
static bool is_innermost(struct stack_span behind)
{
	const char *end = memchr(behind.at, ';', stack_left(&behind));
	size_t length = (size_t)((end ? end : behind.end) - behind.at);

	if (length == 0 || (length == 1 && *behind.at == '-'))
		return true;
	return length > 4 &&
	       (!memcmp(behind.at + length - 4, "_[k]", 4) || !memcmp(behind.at, "--", 2));
}

bool stack_folded_line(struct stack_text *text, const char *line, struct stack_span rest)
{
	const char *blank = memrchr(rest.at, ' ', stack_left(&rest));
	struct stack_span stack = { rest.at, blank };
	static const char unknown[] = "[unknown]";

	if (!blank || blank + 1 == rest.end ||
	    !is_count((struct stack_span){ blank + 1, rest.end }))
		return false;
	if (!memchr(stack.at, ';', stack_left(&stack)))
		return false;
	while (stack.at < stack.end) {
		const char *semicolon = memchr(stack.at, ';', stack_left(&stack));
		const char *end = semicolon ? semicolon : stack.end;
		const char *next = semicolon ? semicolon + 1 : stack.end;
		struct stack_span word = { stack.at, end };
		struct stack_number number;

		if (stack_left(&word) == sizeof(unknown) - 1 && STACK_BEGINS(&word, "[unknown]"))
			text->missing.addresses++;
		else if (stack_read_number(&word, &number) && word.at == end &&
			 stack_is_address(&number))
			stack_report_number(text, line, &number, STACK_FORM_FOLDED,
					    !is_innermost((struct stack_span){ next, stack.end }));
		stack.at = next;
	}
	return true;
}

/* Whether this byte may stand beside an address. */
static bool stack_list_parts(char byte)
{
	return stack_is_blank(byte) || byte == ',' || byte == '[' || byte == ']' || byte == '(' ||
	       byte == ')';
}

void stack_key_addresses(struct stack_text *text, const char *line, struct stack_span key,
			 enum stack_form form)
{
	const char *start = key.at;

	while (key.at < key.end) {
		struct stack_number number;
		const char *next;

		if (*key.at == '0' && (key.at == start || stack_list_parts(key.at[-1])) &&
		    stack_read_number(&key, &number)) {
			if (number.prefixed && (key.at == key.end || stack_list_parts(*key.at)))
				stack_report_number(text, line, &number, form, false);
			continue;
		}
		next = memchr(key.at + 1, '0', (size_t)(key.end - key.at - 1));
		key.at = next ? next : key.end;
	}
}

void stack_map_key_rest(struct stack_text *text, const char *line, struct stack_span rest)
{
	const char *colon = STACK_FIND(&rest, "]:");

	text->in_map_key = !colon;
	if (colon)
		rest.end = colon;
	stack_key_addresses(text, line, rest, STACK_FORM_BARE);
}

void stack_map_key_line(struct stack_text *text, const char *line, struct stack_span rest)
{
	const char *open = memchr(rest.at, '[', stack_left(&rest));

	if (!open)
		return;
	rest.at = open + 1;
	if (rest.at == rest.end || rest.end[-1] == ',' || STACK_FIND(&rest, "]:"))
		stack_map_key_rest(text, line, rest);
}

/* ---- babeltrace2 ---------------------------------------------------------- */

/* The place behind a text in quotes, which a traced program may have printed; the end of the line
 * when the quote does not end. */
static const char *skip_text(const char *quote, const char *end)
{
	const char *at = quote + 1;

	while (at < end && *at != '"')
		at += *at == '\\' && end - at > 1 ? 2 : 1;
	return at < end ? at + 1 : end;
}

/* The value of the field `name`, anywhere in the event outside of texts. */
static bool find_field(struct stack_span event, const char *name, struct stack_span *ret)
{
	size_t length = strlen(name);

	while (event.at < event.end) {
		const char *quote = memchr(event.at, '"', stack_left(&event));
		struct stack_span plain = { event.at, quote ? quote : event.end };
		const char *found = stack_find(&plain, name, length);

		if (!found) {
			event.at = quote ? skip_text(quote, event.end) : event.end;
			continue;
		}
		event.at = found + length;
		/* A longer name may have the same end. */
		if (found > plain.at && stack_is_blank(found[-1]) && STACK_BEGINS(&event, " = ")) {
			*ret = (struct stack_span){ event.at + 3, event.end };
			return true;
		}
	}
	return false;
}

static void name_value(struct stack_text *text, const char *line, struct stack_span *value,
		       bool is_return)
{
	struct stack_frame frame = { .form = STACK_FORM_QUOTED,
				     .blank_before = true,
				     .is_return = is_return };
	const char *end;

	/* The LTTng kernel tracer prints hexadecimal numbers, LTTng-UST 2.13 decimal ones. */
	if (!stack_read_either(value, &frame.value))
		return;
	end = value->at;
	/* A text behind it is a name that another tool has added. */
	if (value->at < value->end && *value->at != ',' && !STACK_BEGINS(value, " }") &&
	    !STACK_BEGINS(value, " ]"))
		return;
	frame.start = frame.end = (size_t)(end - line);
	if (!stack_is_kernel(frame.value))
		text->handler(text->context, &frame);
}

/* "[ [0] = 0x7F..., [1] = 0x7F... ]": first the place of the thread, then its callers. Steps over
 * what it has read. */
static void name_array(struct stack_text *text, const char *line, struct stack_span *array)
{
	bool is_return = false;

	if (!STACK_BEGINS(array, "[ "))
		return;
	array->at++;
	while (STACK_BEGINS(array, " [")) {
		const char *index = array->at + 2, *sign = STACK_FIND(array, "] = ");

		if (!sign || !is_count((struct stack_span){ index, sign }))
			return;
		array->at = sign + 4;
		name_value(text, line, array, is_return);
		is_return = true;
		while (array->at < array->end && *array->at != ',' && *array->at != ']')
			array->at++;
		if (array->at < array->end && *array->at == ']')
			return;
		if (array->at < array->end)
			array->at++;
	}
}

struct event_field {
	size_t position;
	struct stack_span value;
	bool is_array;
	bool is_return;
};

static void add_field(struct stack_span event, const char *name, bool is_array, bool is_return,
		      struct event_field *fields, size_t *count)
{
	struct event_field field = { .is_array = is_array, .is_return = is_return };
	size_t at = *count;

	if (!find_field(event, name, &field.value))
		return;
	field.position = (size_t)(field.value.at - event.at);
	for (; at && fields[at - 1].position > field.position; at--)
		fields[at] = fields[at - 1];
	fields[at] = field;
	++*count;
}

bool stack_trace_event_line(struct stack_text *text, const char *line, struct stack_span rest)
{
	struct event_field fields[4];
	struct stack_span pid, event = { memchr(rest.at, '{', stack_left(&rest)), rest.end };
	const char *done = event.at;
	size_t count = 0;
	int32_t id;

	if (!event.at || !STACK_FIND(&event, " = "))
		return false;
	text->owner = (struct stack_owner){ STACK_OWNER_NONE, 0 };
	if ((find_field(event, "pid", &pid) || find_field(event, "vpid", &pid)) &&
	    stack_read_id(&pid, &id))
		text->owner = (struct stack_owner){ STACK_OWNER_PROCESS, id };
	add_field(event, "ip", false, false, fields, &count);
	add_field(event, "callstack_user", true, false, fields, &count);
	/* The tracepoints of -finstrument-functions: the start of a function, and the place of the
	 * call. */
	if (memmem(rest.at, (size_t)(event.at - rest.at), "cyg_profile", 11)) {
		add_field(event, "addr", false, false, fields, &count);
		add_field(event, "call_site", false, true, fields, &count);
	}
	for (size_t i = 0; i < count; i++) {
		/* Part of the previous field. */
		if (fields[i].value.at < done)
			continue;
		if (fields[i].is_array)
			name_array(text, line, &fields[i].value);
		else
			name_value(text, line, &fields[i].value, fields[i].is_return);
		done = fields[i].value.at;
	}
	return true;
}

/* ---- addresses ------------------------------------------------------------ */

bool stack_address_list(struct stack_text *text, const char *line, struct stack_span rest)
{
	struct stack_span span = rest;
	struct stack_number number;
	int count = 0;

	for (; span.at < span.end; count++) {
		if (!stack_read_number(&span, &number) || !stack_is_address(&number))
			return false;
		if (span.at < span.end && !stack_is_blank(*span.at) && *span.at != ',')
			return false;
		while (span.at < span.end && (stack_is_blank(*span.at) || *span.at == ','))
			span.at++;
	}
	if (count < 2)
		return false;
	while (rest.at < rest.end) {
		stack_read_number(&rest, &number);
		stack_report_number(text, line, &number, STACK_FORM_HEX, false);
		while (rest.at < rest.end && (stack_is_blank(*rest.at) || *rest.at == ','))
			rest.at++;
	}
	return true;
}
