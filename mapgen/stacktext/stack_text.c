/* SPDX-License-Identifier: MIT */
/*
 * One line of stack text: which form it has, and the frame in it. Lines of one
 * frame are read here.
 *
 *   perf script      \t    743314 [unknown] (/memfd:doublemapper (deleted))
 *                    \t    743314 (/memfd:doublemapper (deleted))     -F ip,dso
 *   perf trace       39 blanks, "[0x743314] (/memfd:doublemapper (deleted))"
 *   bpftrace         "    0x7fa523b90f22", "7fa523b90f22" (mode raw)
 *                    "\t7fa5228db04b 0x7fa5228db04b ([unknown])"     (mode perf)
 *   BCC              "  7fa5a0e3123f     [unknown]", stackcount -v, trace -a
 *   libbpf-tools -v  "    #4  0x00007fa5a0e3123f [unknown]"
 *   eu-stack         "#2  0x00007fa5a0e31612", "#2  0x00007fa5a0e31612 - 1 - /file"
 *   gdb              "#2  0x00007fa5a0e31612 in ?? () from /file"
 *   lldb             "    frame #2: 0x00007fa5a0e31612"
 *
 * perf 6.1 prints offsets into the file for the callers of a sample and an
 * address for the sample itself; 5.10 and 6.12 print addresses for both.
 */
#include "mapgen/stacktext/stack_forms.h"

/* Where signal handlers return to. The frame below was interrupted, at any instruction, if the
 * stack was unwound; perf script has frame pointers, which lead to the caller of the interrupted
 * function. */
static const char signal_return[] = "__restore_rt";

enum {
	PERF_TRACE_BLANKS = 39
};

void stack_text_init(struct stack_text *text, stack_frame_handler *handler, void *context)
{
	*text = (struct stack_text){ .handler = handler, .context = context };
}

/* A frame with an address, with or without a name: the next frame is its caller. */
static enum stack_line frame_seen(struct stack_text *text, uint64_t value)
{
	text->in_stack = !stack_is_kernel(value);
	text->inlined_at = 0;
	return STACK_LINE_FRAME;
}

/* "NUMBER [unknown]", with "(file)" behind it or not. `rest` is behind "[unknown]". */
static enum stack_line unknown_frame(struct stack_text *text, const char *line,
				     const struct stack_number *number, struct stack_span rest,
				     bool behind_head)
{
	struct stack_frame frame = {
		.value = number->value,
		.start = (size_t)(rest.at - STACK_UNKNOWN_BYTES - line),
		.end = (size_t)(rest.at - line),
		.form = STACK_FORM_BARE,
		.is_return = text->in_stack,
		.behind_head = behind_head,
		.has_inlined = text->inlined_at == number->value,
		.place = behind_head || (*line == '\t' && !number->prefixed) ? STACK_PLACE_BELOW
									     : STACK_PLACE_NAME,
	};

	stack_skip_blanks(&rest);
	/* libbpf-tools print an offset of their own there; perf prints no "0x". */
	if (!number->prefixed && stack_read_image(rest, line, &frame))
		frame.form = text->plain_names ? STACK_FORM_BARE : STACK_FORM_HEX;
	/* trace(8) and libbpf-tools print offsets too. */
	else if (STACK_BEGINS(&rest, "[") || number->prefixed)
		frame.form = STACK_FORM_HEX;
	/* Without `dso` perf 6.1 prints offsets of callers into files that it does not name. */
	else if (!behind_head && number->digits < 9 && line + frame.start - number->end == 1) {
		text->missing.files++;
		return frame_seen(text, number->value);
	}
	stack_report(text, &frame);
	return frame_seen(text, number->value);
}

/* "NUMBER (file)": the name goes between them. */
static bool nameless_perf_frame(struct stack_text *text, const char *line,
				const struct stack_number *number, struct stack_span rest)
{
	struct stack_frame frame = {
		.value = number->value,
		.start = (size_t)(rest.at - line),
		.end = (size_t)(rest.at - line),
		.form = STACK_FORM_HEX,
		.place = STACK_PLACE_BELOW,
		.blank_after = true,
		.is_return = text->in_stack,
	};

	if (!stack_read_image(rest, line, &frame))
		return false;
	stack_report(text, &frame);
	return true;
}

/* The columns of perf script. */
static bool is_perf_caller(const char *line, const struct stack_number *number)
{
	return *line == '\t' && number->end - line == 1 + 16 && !number->prefixed;
}

/* True for the address of a sample without callers. perf script pads it to 16 characters and puts a
 * blank before it. `from`: where the blank is to be. */
static bool is_perf_sample(const char *from, const struct stack_number *number)
{
	return *from == ' ' && number->end - from >= 1 + 16 && !number->prefixed;
}

/* A number alone. At the start of a line it is one of many addresses, or a sample of perf;
 * elsewhere it is a frame of a stack. */
static enum stack_line lone_number(struct stack_text *text, const char *line,
				   const struct stack_number *number)
{
	bool is_sample = is_perf_sample(line, number) && number->end - line == 1 + 16;
	bool in_stack = (number->start > line && !is_sample) || text->in_map_key;
	struct stack_frame frame = {
		.value = number->value,
		.start = (size_t)(number->start - line),
		.end = (size_t)(number->end - line),
		/* Those of bpftrace have a prefix, except in mode raw; those of perf have none. */
		.form = text->in_map_key || (in_stack && number->prefixed) ? STACK_FORM_DECIMAL
									   : STACK_FORM_HEX,
		.place = is_sample || is_perf_caller(line, number) ? STACK_PLACE_BELOW
								   : STACK_PLACE_NAME,
		.is_return = in_stack && text->in_stack,
	};

	if (!stack_is_address(number) && !text->in_map_key && !is_sample) {
		if (is_perf_caller(line, number)) {
			text->missing.files++;
			return frame_seen(text, number->value);
		}
		text->in_stack = false;
		return STACK_LINE_OTHER;
	}
	stack_report(text, &frame);
	if (!in_stack)
		return STACK_LINE_OTHER;
	return frame_seen(text, number->value);
}

/* Whether perf prints offsets behind names: "NUMBER NAME+0x1f (file)" has one. */
static void learn_names(struct stack_text *text, struct stack_span rest)
{
	const char *open = STACK_FIND(&rest, " (/"), *at;

	if (!open || rest.end[-1] != ')')
		return;
	for (at = open; at > rest.at && hex_values[(unsigned char)at[-1]] >= 0;)
		at--;
	text->plain_names =
		!(at < open && at - rest.at > 3 && at[-1] == 'x' && at[-2] == '0' && at[-3] == '+');
}

static bool is_head(struct stack_text *text, struct stack_span line)
{
	struct stack_span behind;

	return stack_perf_head(text, line, &behind);
}

/* `in` is at "in ?? (". */
static void report_gdb_frame(struct stack_text *text, const char *line, uint64_t value,
			     const char *in, bool is_return)
{
	const struct stack_frame frame = {
		.value = value,
		.start = (size_t)(in + 3 - line),
		.end = (size_t)(in + 5 - line),
		.form = STACK_FORM_BARE,
		.place = STACK_PLACE_AT,
		.is_return = is_return,
	};

	stack_report(text, &frame);
}

/* A frame of perf script with a name; `rest` is at the name. */
static void named_perf_frame(struct stack_text *text, const char *line,
			     const struct stack_number *number, struct stack_span rest)
{
	const char *open = STACK_FIND(&rest, " (/") ?: STACK_FIND(&rest, " ([");
	struct stack_frame frame = {
		.value = number->value,
		.start = (size_t)(rest.at - line),
		.end = (size_t)(rest.at - line),
		.is_named = true,
		.place = STACK_PLACE_BELOW,
		.is_return = text->in_stack,
		.has_inlined = text->inlined_at == number->value,
	};

	if (!text->wants_named || *line != '\t' || number->prefixed || !open)
		return;
	rest.at = open + 1;
	if (stack_read_image(rest, line, &frame))
		stack_report(text, &frame);
}

/* "NAME (inlined)": a part of the frame below it. */
static bool is_inlined(struct stack_span rest)
{
	static const char mark[] = " (inlined)";
	const size_t bytes = sizeof(mark) - 1;

	return stack_left(&rest) > bytes && !memcmp(rest.end - bytes, mark, bytes);
}

/* A line that begins with a hexadecimal word. */
static bool number_line(struct stack_text *text, const char *line, struct stack_span rest,
			enum stack_line *ret)
{
	struct stack_span whole = rest;
	struct stack_number number;

	if (!stack_read_number(&rest, &number) || !stack_at_end_of_word(&rest))
		return false;
	stack_skip_blanks(&rest);
	if (rest.at == rest.end) {
		if (text->ends_in_blank && is_head(text, whole))
			return false;
		*ret = lone_number(text, line, &number);
		return true;
	}
	if (STACK_BEGINS(&rest, "[unknown]")) {
		rest.at += STACK_UNKNOWN_BYTES;
		if (!stack_at_end_of_word(&rest))
			return false;
		*ret = unknown_frame(text, line, &number, rest, false);
		return true;
	}
	/* Where gdb stops a process. */
	if (number.prefixed && number.start == line && STACK_BEGINS(&rest, "in ?? (")) {
		report_gdb_frame(text, line, number.value, rest.at, false);
		*ret = STACK_LINE_OTHER;
		return true;
	}
	if (!stack_bpftrace_perf_frame(text, line, &number, rest, STACK_FORM_DECIMAL) &&
	    !nameless_perf_frame(text, line, &number, rest)) {
		/* A name, or another kind of line: a comm may look like a number, as "bed" does. */
		if (number.start == line ||
		    (number.digits < 9 && !number.prefixed && is_head(text, whole)))
			return false;
		if (is_inlined(rest)) {
			text->inlined_at = number.value;
			*ret = STACK_LINE_FRAME;
			return true;
		}
		learn_names(text, rest);
		named_perf_frame(text, line, &number, rest);
	}
	*ret = frame_seen(text, number.value);
	return true;
}

/* ---- "#N  0x..." ----------------------------------------------------------- */

/* The mark of a caller in eu-stack -a. */
static bool skip_call_mark(struct stack_span *rest)
{
	if (!STACK_BEGINS(rest, " - 1") || (stack_left(rest) > 4 && rest->at[4] != ' '))
		return false;
	rest->at += 4;
	return true;
}

/* A signal may arrive between any two instructions. When it arrived at the first one of a function,
 * the instruction before belongs to another function. gdb prints where that is the case, eu-stack
 * -a marks the other callers. */
static bool is_return(struct stack_text *text, int32_t index, bool has_mark)
{
	bool was_interrupted = index && (text->behind_signal || (text->marks_calls && !has_mark));

	text->behind_signal = false;
	text->marks_calls = has_mark || (index && text->marks_calls);
	return index && !was_interrupted;
}

/* A frame of eu-stack or gdb with a name, at `rest`. */
static void named_frame(struct stack_text *text, const char *line, struct stack_span rest,
			struct stack_frame *frame)
{
	const bool is_gdb = STACK_BEGINS(&rest, "in ");

	frame->is_named = true;
	frame->place = is_gdb ? STACK_PLACE_AT : STACK_PLACE_BELOW_4;
	frame->start = frame->end = (size_t)(rest.at + (is_gdb ? 3 : 0) - line);
	/* Tools of libbpf indent their frames; gdb prints the lines that it knows itself. */
	if (text->wants_named && *line == '#' && !STACK_FIND(&rest, ") at "))
		stack_report(text, frame);
}

static bool numbered_line(struct stack_text *text, const char *line, struct stack_span rest,
			  enum stack_line *ret)
{
	struct stack_number number;
	struct stack_frame frame = { .form = STACK_FORM_BARE, .is_unwound = true };
	int32_t index;

	rest.at++;
	if (!stack_read_id(&rest, &index) || !STACK_BEGINS(&rest, " "))
		return false;
	stack_skip_blanks(&rest);
	if (STACK_BEGINS(&rest, "<signal handler called>"))
		text->behind_signal = true;
	if (!stack_read_number(&rest, &number) || !number.prefixed || !stack_at_end_of_word(&rest))
		return false;
	*ret = STACK_LINE_FRAME;
	frame.value = number.value;
	frame.is_return = is_return(text, index, skip_call_mark(&rest));
	frame.start = frame.end = (size_t)(rest.at - line);
	stack_skip_blanks(&rest);
	if (rest.at == rest.end || STACK_BEGINS(&rest, "- /") || STACK_BEGINS(&rest, "- [")) {
		frame.blank_before = true;
		frame.place = STACK_PLACE_BELOW_4;
		stack_report(text, &frame);
	} else if (STACK_BEGINS(&rest, "in ?? (")) {
		report_gdb_frame(text, line, number.value, rest.at, frame.is_return);
	} else if (STACK_BEGINS(&rest, "[unknown]")) {
		/* libbpf-tools number frames of the kernel and of the user together. */
		rest.at += STACK_UNKNOWN_BYTES;
		*ret = unknown_frame(text, line, &number, rest, false);
	} else {
		named_frame(text, line, rest, &frame);
		frame_seen(text, number.value);
		text->behind_signal = STACK_BEGINS(&rest, signal_return);
	}
	return true;
}

/* A frame of lldb; without a name, nothing follows the address. */
static bool lldb_line(struct stack_text *text, const char *line, struct stack_span rest,
		      enum stack_line *ret)
{
	struct stack_frame frame = { .form = STACK_FORM_SPACED,
				     .place = STACK_PLACE_AT,
				     .blank_before = true,
				     .is_unwound = true };
	struct stack_number number;
	int32_t index;

	if (STACK_BEGINS(&rest, "* "))
		rest.at += 2;
	if (!STACK_BEGINS(&rest, "frame #"))
		return false;
	rest.at += sizeof("frame #") - 1;
	if (!stack_read_id(&rest, &index) || !STACK_BEGINS(&rest, ": "))
		return false;
	rest.at += 2;
	if (!stack_read_number(&rest, &number) || !number.prefixed || !stack_at_end_of_word(&rest))
		return false;
	*ret = STACK_LINE_FRAME;
	frame.value = number.value;
	frame.is_return = is_return(text, index, false);
	frame.start = frame.end = (size_t)(rest.at - line);
	if (rest.at == rest.end)
		stack_report(text, &frame);
	text->behind_signal = STACK_FIND(&rest, signal_return);
	return true;
}

/* Behind a head of perf trace: without a name "[0x743314] (file)". */
static enum stack_line perf_trace_frame(struct stack_text *text, const char *line,
					struct stack_span rest)
{
	struct stack_frame frame = { .form = STACK_FORM_BARE, .is_return = text->in_stack };
	struct stack_number number;

	text->in_stack = !STACK_FIND(&rest, " ([kernel") && !STACK_FIND(&rest, " ([guest");
	frame.start = (size_t)(rest.at - line);
	if (*rest.at++ != '[' || !stack_read_number(&rest, &number) || !number.prefixed ||
	    !STACK_BEGINS(&rest, "] "))
		return STACK_LINE_FRAME;
	frame.value = number.value;
	frame.end = (size_t)(++rest.at - line);
	stack_skip_blanks(&rest);
	if (stack_read_image(rest, line, &frame))
		stack_report(text, &frame);
	return STACK_LINE_FRAME;
}

/* ---- the rest --------------------------------------------------------------- */

/* "7fa523b52314 (/file)" and "7fa523b52314", at once or behind "event: ", to the end of the line.
 * `file_ret` is behind the number. */
static bool nameless_behind_head(struct stack_span rest, struct stack_number *ret,
				 struct stack_span *file_ret)
{
	const char *open = rest.end[-1] == ')'
				   ? STACK_FIND(&rest, " (/") ?: STACK_FIND(&rest, " ([")
				   : rest.end;
	struct stack_span number = { open, open };
	const char *before;

	if (!open)
		return false;
	while (number.at > rest.at && !stack_is_blank(number.at[-1]))
		number.at--;
	for (before = number.at; before > rest.at && stack_is_blank(before[-1]);)
		before--;
	*file_ret = (struct stack_span){ open, rest.end };
	return (before == rest.at || before[-1] == ':') && stack_read_number(&number, ret) &&
	       number.at == open && !ret->prefixed &&
	       (stack_is_address(ret) || is_perf_sample(before, ret));
}

/* A sample without callers: "comm 1 12.345: event:  7fa523b52314 [unknown] (/file)". */
static void frame_behind_head(struct stack_text *text, const char *line, struct stack_span rest)
{
	struct stack_number number;
	struct stack_span behind;

	if (rest.at >= rest.end)
		return;
	if (stack_unknown_inside(rest, &number, &behind)) {
		unknown_frame(text, line, &number, behind, true);
	} else if (nameless_behind_head(rest, &number, &behind)) {
		struct stack_frame frame = {
			.value = number.value,
			.start = (size_t)(number.start - line),
			.end = (size_t)(number.end - line),
			.form = STACK_FORM_HEX,
			.place = STACK_PLACE_BELOW,
			.behind_head = true,
		};

		if (behind.at < behind.end) {
			behind.at++;
			frame.start = frame.end = (size_t)(behind.at - line);
			frame.blank_after = stack_read_image(behind, line, &frame);
		}
		stack_report(text, &frame);
	}
}

/* "[unknown]", "[unknown] [file]": BCC without addresses. */
static bool nameless_line(struct stack_text *text, struct stack_span rest)
{
	if (!STACK_BEGINS(&rest, "[unknown]"))
		return false;
	rest.at += STACK_UNKNOWN_BYTES;
	if (!stack_at_end_of_word(&rest))
		return false;
	text->missing.addresses++;
	return true;
}

/* Lines that begin with none of the signs above. */
static enum stack_line other_line(struct stack_text *text, const char *line, struct stack_span rest)
{
	struct stack_span behind;

	text->in_stack = false;
	if (rest.at > line && stack_bcc_tail(text, line, rest))
		return STACK_LINE_OWNER;
	if (*rest.at == '{' && stack_json_line(text, line, rest))
		return STACK_LINE_OTHER;
	/* babeltrace2 prints "[time]" first; a comm may begin like this too. */
	if (*rest.at == '[' &&
	    (nameless_line(text, rest) || stack_trace_event_line(text, line, rest)))
		return STACK_LINE_OTHER;
	if (stack_perf_trace_head(text, rest))
		return STACK_LINE_OTHER;
	if (stack_perf_head(text, rest, &behind)) {
		frame_behind_head(text, line, behind);
		text->in_stack = false;
		return STACK_LINE_OTHER;
	}
	if (stack_debugger_head(text, rest) || stack_folded_line(text, line, rest) ||
	    (rest.at == line && stack_trace_row(text, rest)))
		return STACK_LINE_OTHER;
	stack_trace_event_line(text, line, rest);
	return STACK_LINE_OTHER;
}

static enum stack_line map_line(struct stack_text *text, const char *line, struct stack_span rest)
{
	text->in_stack = false;
	if (*rest.at == '@')
		stack_map_key_line(text, line, rest);
	else if (text->in_map_key)
		stack_map_key_rest(text, line, rest);
	return STACK_LINE_OTHER;
}

/* "  7    Thread 0x7f61a8dff6c0 (LWP 6183) "worker"  0x00007f61baab42f6 in ?? ()": the place of
 * each thread in gdb. */
static bool gdb_thread_line(struct stack_text *text, const char *line, struct stack_span rest)
{
	struct stack_number read;
	struct stack_span number;
	const char *found;
	int32_t index;

	if (STACK_BEGINS(&rest, "* "))
		rest.at += 2;
	if (!stack_read_id(&rest, &index))
		return false;
	stack_skip_blanks(&rest);
	found = STACK_BEGINS(&rest, "Thread 0x") ? STACK_FIND(&rest, " in ?? (") : NULL;
	if (!found)
		return false;
	number = (struct stack_span){ found, found };
	while (number.at > rest.at && !stack_is_blank(number.at[-1]))
		number.at--;
	if (!stack_read_number(&number, &read) || !read.prefixed || number.at != found)
		return false;
	report_gdb_frame(text, line, read.value, found + 1, false);
	return true;
}

/* "  file.c:12" and "  program[1b2]", below a frame of perf: its place in the source. "file.c:~12"
 * is from this program. */
static bool source_line(const struct stack_text *text, const char *line, struct stack_span rest,
			enum stack_line *ret)
{
	const char *end = rest.end, *digits;
	bool has_address = end[-1] == ']';

	if (!text->has_tab || rest.at - line != 2 || line[0] != ' ' || line[1] != ' ')
		return false;
	end -= has_address;
	digits = end;
	while (digits > rest.at && (has_address ? hex_values[(unsigned char)digits[-1]] >= 0
						: stack_is_digit(digits[-1])))
		digits--;
	if (digits == end)
		return false;
	digits -= !has_address && digits > rest.at && digits[-1] == '~';
	*ret = has_address ? STACK_LINE_NO_SOURCE : STACK_LINE_SOURCE;
	return digits > rest.at + 1 && digits[-1] == (has_address ? '[' : ':');
}

enum stack_line stack_text_line(struct stack_text *text, const char *line, size_t size_bytes)
{
	struct stack_span rest = { line, line + size_bytes };
	enum stack_line kind;

	text->ends_in_blank = size_bytes && line[size_bytes - 1] == ' ';
	while (rest.end > line && (stack_is_blank(rest.end[-1]) || rest.end[-1] == '\r'))
		rest.end--;
	text->width_bytes = (size_t)(rest.end - line);
	stack_skip_blanks(&rest);
	if (rest.at >= rest.end) {
		/* The owner of one stack does not apply to the next. */
		text->owner = (struct stack_owner){ STACK_OWNER_NONE, 0 };
		text->in_stack = false;
		return STACK_LINE_OTHER;
	}
	if (source_line(text, line, rest, &kind))
		return kind;
	text->has_tab = *line == '\t';
	if (*rest.at == '>' && stack_strace_frame(text, line, rest))
		return STACK_LINE_FRAME;
	if (rest.at == line)
		stack_strace_call(text, rest);
	if ((*rest.at == 'f' || *rest.at == '*') && lldb_line(text, line, rest, &kind))
		return kind;
	if ((stack_is_digit(*rest.at) || *rest.at == '*') && gdb_thread_line(text, line, rest))
		return STACK_LINE_OTHER;
	if (text->in_perf_trace && rest.at - line == PERF_TRACE_BLANKS)
		return perf_trace_frame(text, line, rest);
	if (hex_values[(unsigned char)*rest.at] >= 0) {
		if (number_line(text, line, rest, &kind))
			return kind;
		if (stack_address_list(text, line, rest)) {
			text->in_stack = false;
			return STACK_LINE_OTHER;
		}
	} else if (*rest.at == '#') {
		if (numbered_line(text, line, rest, &kind))
			return kind;
	} else if (*rest.at == '@' || *rest.at == ']' || *rest.at == ',') {
		return map_line(text, line, rest);
	} else if (STACK_BEGINS(&rest, "--")) {
		text->in_stack = false;
		return STACK_LINE_FRAME;
	}
	if (text->in_map_key) {
		/* A frame with a name; the next one is its caller. */
		text->in_stack = rest.at > line;
		return STACK_LINE_OTHER;
	}
	return other_line(text, line, rest);
}
