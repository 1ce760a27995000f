/* SPDX-License-Identifier: MIT */
/*
 * Lines that name the process or the thread of a stack. The frames stand on other lines.
 *
 *     perf script     web 27737/27756 [001] 568.578983:     250000 cycles:
 *                     the ids are in front of the time; without a time other signs must
 *                     make them certain (timeless_head())
 *     perf trace           0.000 ( 0.040 ms): web/27756 futex(uaddr: 0x7f...)
 *     gdb, lldb       Thread 3 (Thread 0x7f... (LWP 27756)):
 *     eu-stack        PID 27737 - process
 *     trace-bpfcc     27737   27756   web   sys_futex
 *                     a row below a heading, which says whether a time comes first
 *     other bcc           -                web (27737)
 *                     behind the frames: the only form whose process follows its stack
 *
 * A program chooses the name of its thread. So each reader looks for the parts that the tool wrote,
 * and takes the name as any text.
 */
#include "mapgen/stacktext/stack_forms.h"

static void trim_end(struct stack_span *span)
{
	while (span->end > span->at && stack_is_blank(span->end[-1]))
		span->end--;
}

/* Removes the last word of a span; false when there is none. */
static bool last_word(struct stack_span *span, struct stack_span *ret)
{
	trim_end(span);
	ret->at = ret->end = span->end;
	while (ret->at > span->at && !stack_is_blank(ret->at[-1]))
		ret->at--;
	span->end = ret->at;
	return ret->at < ret->end;
}

/* "27737/27756" or "27756"; perf pads both from the left, the second from the right. */
static bool read_ids(struct stack_span word, struct stack_owner *ret)
{
	int32_t first, second;

	if (!stack_read_id(&word, &first))
		return false;
	if (word.at == word.end) {
		*ret = (struct stack_owner){ STACK_OWNER_THREAD, first };
		return true;
	}
	if (*word.at++ != '/' || !stack_read_id(&word, &second) || word.at != word.end)
		return false;
	*ret = (struct stack_owner){ STACK_OWNER_PROCESS, first };
	return true;
}

/* The time, "568.578983:": its start, and behind its colon in `*end_ret`. NULL: there is none. */
static const char *find_time(struct stack_span rest, const char **end_ret)
{
	struct stack_span from = rest;
	const char *colon, *at;

	/* comm has at most 15 bytes, and may have colons in it. */
	for (int tries = 0; tries < 16; tries++) {
		colon = memchr(from.at, ':', stack_left(&from));
		if (!colon)
			return NULL;
		at = colon;
		while (at > rest.at && stack_is_digit(at[-1]))
			at--;
		if (colon - at >= 3 && at > rest.at && at[-1] == '.') {
			at--;
			while (at > rest.at && stack_is_digit(at[-1]))
				at--;
			if (at > rest.at && stack_is_blank(at[-1]) && stack_is_digit(*at) &&
			    (colon + 1 == rest.end || stack_is_blank(colon[1]))) {
				*end_ret = colon + 1;
				return at;
			}
		}
		from.at = colon + 1;
	}
	return NULL;
}

/*
 * "568.578983:" in ns: the last time that is printed so, because the missing digits were cut off. 0
 * when it does not fit.
 */
static uint64_t read_time(const char *at)
{
	uint64_t ns = 0;
	int decimals = -1;

	for (; decimals < 9 && *at != ':'; at++) {
		if (*at == '.') {
			decimals = 0;
			continue;
		}
		if (__builtin_mul_overflow(ns, (uint64_t)10, &ns) ||
		    __builtin_add_overflow(ns, (uint64_t)(*at - '0'), &ns))
			return 0;
		decimals += decimals >= 0;
	}
	for (; decimals < 9; decimals++)
		if (__builtin_mul_overflow(ns, (uint64_t)10, &ns) ||
		    __builtin_add_overflow(ns, (uint64_t)9, &ns))
			return 0;
	return ns;
}

/* "250000 cycles:" at the end of a head, or one of the two words; behind the ids they can be
 * nothing else. */
static bool drop_event(struct stack_span *rest)
{
	struct stack_span before = *rest, word;
	struct stack_owner owner;
	bool has_event = last_word(&before, &word) && word.end[-1] == ':' && stack_left(&word) > 1;

	if (has_event)
		*rest = before;
	before = *rest;
	if (last_word(&before, &word) && !memchr(word.at, '/', stack_left(&word)) &&
	    read_ids(word, &owner)) {
		struct stack_span ids = before;

		if (last_word(&ids, &word) && read_ids(word, &owner) &&
		    (has_event || owner.kind == STACK_OWNER_PROCESS))
			*rest = before;
	}
	return has_event;
}

/* Removes a sample without callers from the end of a line. */
static bool cut_sample(struct stack_span *rest, bool *has_file_ret)
{
	struct stack_number number;
	struct stack_span behind;

	if (!stack_unknown_inside(*rest, &number, &behind))
		return false;
	stack_skip_blanks(&behind);
	*has_file_ret = STACK_BEGINS(&behind, "(") && behind.end[-1] == ')';
	if (!*has_file_ret && (behind.at < behind.end || !stack_is_address(&number)))
		return false;
	rest->end = number.start;
	return true;
}

static void drop_processor(struct stack_span *rest)
{
	struct stack_span before = *rest, word;

	if (last_word(&before, &word) && *word.at == '[' && word.end[-1] == ']')
		*rest = before;
}

/* "%5d " of perf before 6.5, "%7d " since. */
static bool has_width_of_id(const struct stack_text *text)
{
	return text->width_bytes == 5 || text->width_bytes == 7;
}

/*
 * Without a time "27737/27756" is certain. So is "27756" behind a comm, before an event or alone,
 * if perf ends it by a blank and no process was named before. A sample makes each of them certain.
 */
static bool timeless_ids(const struct stack_text *text, struct stack_span rest, bool has_sample,
			 struct stack_owner *ret)
{
	struct stack_span word;
	bool ends_in_blank = has_sample || text->ends_in_blank;
	bool has_event = ends_in_blank && drop_event(&rest), has_comm;

	drop_processor(&rest);
	if (!last_word(&rest, &word) || !stack_is_digit(word.end[-1]) || !read_ids(word, ret))
		return false;
	trim_end(&rest);
	has_comm = rest.at < rest.end;
	if (ret->kind == STACK_OWNER_PROCESS)
		return has_comm || ends_in_blank;
	return has_sample || (text->ends_in_blank && text->owner.kind == STACK_OWNER_NONE &&
			      (has_comm || has_event || has_width_of_id(text)));
}

/* "27737/27756  syscalls:sys_enter_read: fd: 0x7, buf: ...": the text of a tracepoint may look like
 * anything. */
static bool ids_of_tracepoint(struct stack_span rest, struct stack_owner *ret)
{
	const char *slash = rest.at;

	while ((slash = memchr(slash, '/', (size_t)(rest.end - slash)))) {
		struct stack_span word = { slash, slash }, event;

		while (word.at > rest.at && stack_is_digit(word.at[-1]))
			word.at--;
		for (slash++; slash < rest.end && stack_is_digit(*slash);)
			slash++;
		word.end = slash;
		event = (struct stack_span){ slash, rest.end };
		stack_skip_blanks(&event);
		for (event.end = event.at; event.end < rest.end && !stack_is_blank(*event.end);)
			event.end++;
		if ((word.at == rest.at || stack_is_blank(word.at[-1])) && event.at > slash &&
		    stack_left(&event) > 3 && event.end[-1] == ':' &&
		    memchr(event.at, ':', stack_left(&event) - 1) && read_ids(word, ret))
			return true;
	}
	return false;
}

static bool timeless_head(struct stack_text *text, struct stack_span rest,
			  struct stack_span *behind_ret)
{
	struct stack_owner owner = { STACK_OWNER_NONE, 0 };
	struct stack_span head = rest;
	bool has_file = false, has_sample = cut_sample(&head, &has_file);

	/* perf may have been run without ids. */
	if (!ids_of_tracepoint(rest, &owner) && !timeless_ids(text, head, has_sample, &owner) &&
	    !has_file)
		return false;
	text->owner = owner;
	text->time_ns = 0;
	*behind_ret = (struct stack_span){ head.end, rest.end };
	return true;
}

bool stack_perf_head(struct stack_text *text, struct stack_span rest, struct stack_span *behind_ret)
{
	struct stack_owner owner;
	struct stack_span word, before = rest;
	const char *time = find_time(rest, &behind_ret->at);

	if (!time)
		return timeless_head(text, rest, behind_ret);
	behind_ret->end = rest.end;
	before.end = time;
	/* The CPU, flags and similar stand between the ids and the time. */
	for (int words = 0; words < 4 && last_word(&before, &word); words++) {
		if (!read_ids(word, &owner))
			continue;
		text->owner = owner;
		text->time_ns = read_time(time);
		return true;
	}
	return false;
}

static void skip_any(struct stack_span *span, const char *bytes)
{
	while (span->at < span->end && strchr(bytes, *span->at))
		span->at++;
}

/* "( 0.040 ms): ", "(         ): ". */
static bool skip_duration(struct stack_span *rest)
{
	struct stack_span behind = *rest;

	if (!STACK_BEGINS(&behind, "("))
		return false;
	behind.at++;
	skip_any(&behind, "0123456789. ms");
	if (!STACK_BEGINS(&behind, "): "))
		return false;
	rest->at = behind.at + 3;
	return true;
}

/* "comm/27756 "; a comm may have slashes in it. */
static bool skip_thread(struct stack_span *rest, int32_t *ret)
{
	const size_t longest_comm = 14;

	for (size_t i = 0; i <= longest_comm && i < stack_left(rest); i++) {
		struct stack_span behind = { rest->at + i + 1, rest->end };

		if (rest->at[i] == '/' && stack_read_id(&behind, ret) &&
		    STACK_BEGINS(&behind, " ")) {
			rest->at = behind.at + 1;
			return true;
		}
	}
	return false;
}

bool stack_perf_trace_head(struct stack_text *text, struct stack_span rest)
{
	const char *colon, *open, *start = rest.at;
	bool has_duration, has_thread;
	int32_t id = 0;

	skip_any(&rest, "0123456789.?");
	if (rest.at == start || !STACK_BEGINS(&rest, " "))
		return false;
	rest.at++;
	has_duration = skip_duration(&rest);
	has_thread = skip_thread(&rest, &id);
	/* Without system calls, only the event tells this line from other texts. */
	colon = has_thread ? memchr(rest.at, ':', stack_left(&rest)) : NULL;
	open = colon ? memchr(rest.at, '(', stack_left(&rest)) : NULL;
	if (!has_duration && !(open && colon < open))
		return false;
	text->in_perf_trace = true;
	text->owner =
		(struct stack_owner){ has_thread ? STACK_OWNER_THREAD : STACK_OWNER_NONE, id };
	text->time_ns = 0;
	return true;
}

bool stack_debugger_head(struct stack_text *text, struct stack_span rest)
{
	const char *light_weight;
	int32_t id;

	if (STACK_BEGINS(&rest, "PID ")) {
		rest.at += 4;
		if (!stack_read_id(&rest, &id) || !STACK_BEGINS(&rest, " - "))
			return false;
		/* A core file has addresses of its own. */
		rest.at += 3;
		text->owner = STACK_BEGINS(&rest, "process") && stack_left(&rest) == 7
				      ? (struct stack_owner){ STACK_OWNER_PROCESS, id }
				      : (struct stack_owner){ STACK_OWNER_PROCESS, 0 };
		return true;
	}
	if (!STACK_BEGINS(&rest, "Thread "))
		return false;
	light_weight = STACK_FIND(&rest, "(LWP ");
	if (!light_weight)
		return false;
	rest.at = light_weight + 5;
	if (!stack_read_id(&rest, &id) || !STACK_BEGINS(&rest, ")"))
		return false;
	text->owner = (struct stack_owner){ STACK_OWNER_THREAD, id };
	return true;
}

/* The heading of trace(8): "PID     TID     COMM ...", with "TIME" before it on request. */
static uint8_t trace_heading(struct stack_span rest)
{
	uint8_t column = 1;

	if (STACK_BEGINS(&rest, "TIME")) {
		column++;
		rest.at += 4;
		stack_skip_blanks(&rest);
	}
	if (!STACK_BEGINS(&rest, "PID "))
		return 0;
	rest.at += 4;
	stack_skip_blanks(&rest);
	return STACK_BEGINS(&rest, "TID ") && STACK_FIND(&rest, "COMM") ? column : 0;
}

bool stack_trace_row(struct stack_text *text, struct stack_span rest)
{
	uint8_t heading = trace_heading(rest);
	int32_t pid, tid;

	if (heading) {
		text->trace_column = heading;
		return true;
	}
	if (!text->trace_column)
		return false;
	for (uint8_t column = 1; column < text->trace_column; column++) {
		while (rest.at < rest.end && !stack_is_blank(*rest.at))
			rest.at++;
		stack_skip_blanks(&rest);
	}
	if (!stack_read_id(&rest, &pid) || !STACK_BEGINS(&rest, " "))
		return false;
	stack_skip_blanks(&rest);
	if (!stack_read_id(&rest, &tid) || !STACK_BEGINS(&rest, " "))
		return false;
	text->owner = (struct stack_owner){ STACK_OWNER_PROCESS, pid };
	return true;
}

bool stack_bcc_tail(struct stack_text *text, const char *line, struct stack_span rest)
{
	char last = rest.end > rest.at ? rest.end[-1] : '\0';
	const char *at = rest.end - 1;
	struct stack_span number;
	int32_t id;

	if (rest.at - line != 4 || (last != ')' && last != ']'))
		return false;
	while (at > rest.at && stack_is_digit(at[-1]))
		at--;
	number = (struct stack_span){ at, rest.end - 1 };
	if (at < rest.at + 3 || at[-1] != (last == ')' ? '(' : '[') || at[-2] != ' ')
		return false;
	if (last == ')' && !STACK_BEGINS(&rest, "- "))
		return false;
	if (!stack_read_id(&number, &id) || number.at != number.end)
		return false;
	text->behind = (struct stack_owner){ STACK_OWNER_PROCESS, id };
	return true;
}
