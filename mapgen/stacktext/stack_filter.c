/* SPDX-License-Identifier: MIT */
/*
 * How the stream becomes lines, and lines get names.
 *
 * Input stays in one buffer until it is written. read_lines() passes each whole line to
 * stack_text.h, which reports frames; these collect until a batch is full, the owner changes, or
 * the input pauses. Then the client names the batch, and write_up_to() writes the text between the
 * frames and the names.
 *
 * Some tools print the process behind a stack. Such a stack is held back (follow_stack()) until
 * its owner comes, or a line that belongs to no stack.
 */
#include "mapgen/stacktext/stack_filter.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/base/grow.h"
#include "libsym/base/hex.h"
#include "libsym/base/utf8.h"
#include "libsym/libsym.h"
#include "mapgen/cli/name_form.h"
#include "mapgen/cli/source_file.h"

enum {
	READ_BYTES = 1 << 18,
	BUFFER_BYTES = STACK_LONGEST_LINE_BYTES + READ_BYTES,
	/* Frames of one owner that are looked up together. */
	BATCH = 2048,
	WRITE_BYTES = 1 << 18,
	/* The output is written at WRITE_BYTES; one more name always fits, with each byte escaped.
	 */
	OUTPUT_BYTES = 1 << 21,
	LONGEST_NAME_BYTES = 1 << 17,
	LONGEST_PATH_BYTES = 1 << 12,
};

/* A frame in the buffer that needs a name. */
struct pending {
	struct stack_frame frame; /* its offsets count from the start of the line */
	size_t line;              /* offset of that line in the buffer */
	/* [place_start, place_end) becomes the source line, unless that goes to the name. */
	size_t place_start, place_end;
	bool has_place;      /* the text has the source line */
	bool has_line_alone; /* no other frame is on its line */
	struct stack_owner owner;
	uint64_t time_ns;
};

struct stack_filter {
	struct stack_filter_client client;
	struct stack_text text;
	char *data; /* BUFFER_BYTES */
	size_t size_bytes;
	size_t scanned_bytes;  /* lines up to here have been read */
	size_t searched_bytes; /* no newline between that and this offset */
	size_t line;           /* start of the line that is being read */
	bool passing;          /* inside a line that is too long */
	/* The last stack, while its owner may still follow: its first byte and its first frame. */
	uint64_t stack_lines; /* frames so far */
	bool in_stack;
	size_t stack_start;
	size_t stack_frames;
	struct pending *frames;
	size_t count, capacity;
	bool broken;                 /* out of memory, or the client has failed */
	struct stack_query *queries; /* BATCH of each */
	struct stack_name *names;
	struct buf output;
	char *name_room; /* LONGEST_NAME_BYTES */
};

static void take_frame(void *context, const struct stack_frame *frame)
{
	struct stack_filter *filter = context;

	if (!grow_items((void **)&filter->frames, &filter->capacity, filter->count,
			sizeof(*filter->frames))) {
		filter->broken = true;
		return;
	}
	filter->frames[filter->count++] = (struct pending){ .frame = *frame,
							    .line = filter->line,
							    .place_start = filter->text.width_bytes,
							    .place_end = filter->text.width_bytes,
							    .time_ns = filter->text.time_ns };
}

struct stack_filter *stack_filter_create(const struct stack_filter_client *client)
{
	struct stack_filter *filter = calloc(1, sizeof(*filter));

	if (!filter)
		return NULL;
	filter->client = *client;
	stack_text_init(&filter->text, take_frame, filter);
	filter->text.wants_named = client->lines;
	buf_init(&filter->output, OUTPUT_BYTES);
	filter->data = malloc(BUFFER_BYTES);
	filter->queries = calloc(BATCH, sizeof(*filter->queries));
	filter->names = calloc(BATCH, sizeof(*filter->names));
	filter->name_room = malloc(LONGEST_NAME_BYTES);
	if (filter->data && filter->queries && filter->names && filter->name_room)
		return filter;
	stack_filter_destroy(filter);
	return NULL;
}

void stack_filter_destroy(struct stack_filter *filter)
{
	if (!filter)
		return;
	buf_deinit(&filter->output);
	free(filter->data);
	free(filter->queries);
	free(filter->names);
	free(filter->frames);
	free(filter->name_room);
	free(filter);
}

/* ---- writing -------------------------------------------------------------- */

static void write_out(struct stack_filter *filter, const void *bytes, size_t size_bytes)
{
	if (!filter->broken && size_bytes)
		filter->broken = !filter->client.write(filter->client.context, bytes, size_bytes);
}

static void stack_filter_flush(struct stack_filter *filter)
{
	filter->broken |= filter->output.failure != BUF_OK;
	write_out(filter, filter->output.data, filter->output.size_bytes);
	buf_clear(&filter->output);
}

static void flush_full(struct stack_filter *filter)
{
	if (filter->output.size_bytes > WRITE_BYTES)
		stack_filter_flush(filter);
}

/* Input that is copied unchanged. Large pieces are not buffered. */
static void write_text(struct stack_filter *filter, size_t start, size_t end)
{
	size_t size_bytes = end - start;

	if (filter->output.size_bytes + size_bytes <= WRITE_BYTES) {
		buf_append(&filter->output, filter->data + start, size_bytes);
		return;
	}
	stack_filter_flush(filter);
	write_out(filter, filter->data + start, size_bytes);
}

static bool is_json(enum stack_form form)
{
	return form == STACK_FORM_JSON || form == STACK_FORM_JSON_BARE;
}

/* Bytes that no form changes. */
static size_t plain_bytes(const char *text)
{
	size_t count = 0;

	while (text[count] >= ' ' && text[count] < 0x7f && text[count] != ';' &&
	       text[count] != '"' && text[count] != '\\')
		count++;
	return count;
}

/* Foreign text inside a line that other programs read. */
static void write_escaped(struct buf *output, const char *text, enum stack_form form)
{
	for (;;) {
		size_t plain = plain_bytes(text);
		unsigned char byte = (unsigned char)text[plain];

		buf_append(output, text, plain);
		text += plain;
		if (!byte)
			return;
		if (byte >= 0x80 && is_json(form)) {
			text += utf8_append(output, text);
			continue;
		}
		if (byte < 0x20 || byte == 0x7f)
			byte = '?';
		else if (byte == ';' && form == STACK_FORM_FOLDED)
			byte = ':';
		else if ((byte == '"' || byte == '\\') &&
			 (form == STACK_FORM_QUOTED || is_json(form)))
			buf_append_char(output, '\\');
		buf_append_char(output, (char)byte);
		text++;
	}
}

static void write_offset(struct buf *output, uint64_t offset_bytes, enum stack_form form)
{
	char digits[16];

	if (form == STACK_FORM_DECIMAL || form == STACK_FORM_JSON) {
		buf_printf(output, "+%llu", (unsigned long long)offset_bytes);
	} else if (form == STACK_FORM_SPACED) {
		buf_printf(output, " + %llu", (unsigned long long)offset_bytes);
	} else if (form == STACK_FORM_HEX || form == STACK_FORM_QUOTED) {
		buf_append_string(output, "+0x");
		buf_append(output, digits, hex_write_u64(digits, offset_bytes));
	}
}

static bool has_place(const struct stack_filter *filter, const struct source_place *place)
{
	return filter->client.lines && place->file && place->line &&
	       strlen(place->file) < LONGEST_PATH_BYTES;
}

/* FILE:LINE where the form has it, without the directories of the file, as perf prints it. */
static void write_place(struct stack_filter *filter, const struct stack_frame *frame,
			const struct source_place *place)
{
	static const char *const beginnings[] = {
		[STACK_PLACE_NAME] = "@",
		[STACK_PLACE_BELOW] = "\n  ",
		[STACK_PLACE_BELOW_4] = "\n    ",
		[STACK_PLACE_AT] = " at ",
	};

	if (!has_place(filter, place))
		return;
	buf_append_string(&filter->output, beginnings[frame->place]);
	write_escaped(&filter->output, source_file_name(place->file), frame->form);
	buf_printf(&filter->output, ":%s%" PRIu32, place->is_approximate ? "~" : "", place->line);
}

/* The name alone, as the user wants it. */
static void write_plain_name(struct stack_filter *filter, enum stack_form form, const char *name)
{
	if (filter->client.names != NAME_FORM_FULL &&
	    name_form_write(filter->client.names, name, filter->name_room, LONGEST_NAME_BYTES) <
		    LONGEST_NAME_BYTES)
		name = filter->name_room;
	write_escaped(&filter->output, name, form);
}

/* The name of an inlined function, as perf marks it. */
static void write_inlined_name(struct stack_filter *filter, const struct stack_frame *frame,
			       const struct stack_inlined *inlined)
{
	bool has_name = *inlined->name && strlen(inlined->name) < LONGEST_NAME_BYTES;

	write_plain_name(filter, frame->form, has_name ? inlined->name : "?");
	buf_append_string(&filter->output, " (inlined)");
	if (frame->place == STACK_PLACE_NAME)
		write_place(filter, frame, &inlined->place);
}

static void write_name(struct stack_filter *filter, const struct stack_frame *frame,
		       const struct stack_name *name)
{
	struct buf *output = &filter->output;

	if (frame->blank_before)
		buf_append_char(output, ' ');
	if (frame->form == STACK_FORM_QUOTED)
		buf_append_char(output, '"');
	write_plain_name(filter, frame->form, name->name);
	if (name->tier && !filter->client.strip_tiers) {
		buf_append_char(output, '[');
		write_escaped(output, name->tier, frame->form);
		buf_append_char(output, ']');
	}
	write_offset(output, name->offset_bytes, frame->form);
	if (frame->place == STACK_PLACE_NAME)
		write_place(filter, frame, &name->place);
	if (frame->form == STACK_FORM_QUOTED)
		buf_append_char(output, '"');
	if (frame->blank_after)
		buf_append_char(output, ' ');
}

/* Folded lines have callers first. */
static void write_folded_inlined(struct stack_filter *filter, const struct stack_frame *frame,
				 const struct stack_name *name)
{
	for (size_t i = name->inlined_count; i > 0; i--) {
		buf_append_char(&filter->output, ';');
		write_inlined_name(filter, frame, &name->inlined[i - 1]);
		flush_full(filter);
	}
}

/* Writes the text up to a frame, and its name; returns where the text goes on. */
static size_t write_frame(struct stack_filter *filter, size_t from, const struct pending *pending,
			  const struct stack_name *name)
{
	const struct stack_frame *frame = &pending->frame;

	if (!name->name || frame->is_named || strlen(name->name) >= LONGEST_NAME_BYTES)
		return from;
	write_text(filter, from, pending->line + frame->start);
	write_name(filter, frame, name);
	from = pending->line + frame->end;
	if (frame->fill_image && *name->path) {
		write_text(filter, from, pending->line + frame->image_start);
		write_escaped(&filter->output, name->path, frame->form);
		from = pending->line + frame->image_end;
	}
	flush_full(filter);
	if (frame->form == STACK_FORM_FOLDED)
		write_folded_inlined(filter, frame, name);
	return from;
}

/* As write_frame(), for the source line. */
static size_t write_line(struct stack_filter *filter, size_t from, const struct pending *pending,
			 const struct stack_name *name)
{
	if (pending->frame.place == STACK_PLACE_NAME || pending->has_place ||
	    !has_place(filter, &name->place))
		return from;
	write_text(filter, from, pending->line + pending->place_start);
	write_place(filter, &pending->frame, &name->place);
	return pending->line + pending->place_end;
}

/*
 * A line as that of the frame, for a function inlined there. perf prints the mark in place of the
 * file; other tools have the rest of the line too.
 */
static void write_inlined_line(struct stack_filter *filter, const struct pending *pending,
			       const struct stack_inlined *inlined)
{
	const struct stack_frame *frame = &pending->frame;
	bool has_rest = frame->place != STACK_PLACE_BELOW && !frame->is_named && !frame->fill_image;

	write_text(filter, pending->line, pending->line + frame->start);
	if (frame->blank_before)
		buf_append_char(&filter->output, ' ');
	write_inlined_name(filter, frame, inlined);
	if (has_rest)
		write_text(filter, pending->line + frame->end,
			   pending->line + pending->place_start);
	if (frame->place != STACK_PLACE_NAME)
		write_place(filter, frame, &inlined->place);
	buf_append_char(&filter->output, '\n');
	flush_full(filter);
}

/* As write_frame(), for the lines above that of the frame. */
static size_t write_inlined(struct stack_filter *filter, size_t from, const struct pending *pending,
			    const struct stack_name *name)
{
	if (!name->inlined_count || !pending->has_line_alone || pending->frame.has_inlined)
		return from;
	write_text(filter, from, pending->line);
	for (size_t i = 0; i < name->inlined_count; i++)
		write_inlined_line(filter, pending, &name->inlined[i]);
	return pending->line;
}

static struct stack_query query_of(const struct stack_filter *filter, const struct pending *pending)
{
	const struct stack_frame *frame = &pending->frame;
	struct stack_query query = { .value = frame->value,
				     .is_return = frame->is_return,
				     .is_unwound = frame->is_unwound,
				     .behind_head = frame->behind_head,
				     .is_named = frame->is_named,
				     .time_ns = pending->time_ns };

	if (frame->image_end > frame->image_start && !frame->fill_image) {
		query.image = filter->data + pending->line + frame->image_start;
		query.image_bytes = frame->image_end - frame->image_start;
	}
	return query;
}

/* Whether one frame is on the line after the other's. */
static bool is_next_line(const struct stack_filter *filter, const struct pending *before,
			 const struct pending *pending)
{
	const char *line = filter->data + before->line;

	return pending->line > before->line &&
	       memchr(line, '\n', pending->line - before->line) == filter->data + pending->line - 1;
}

static bool same_owner(struct stack_owner one, struct stack_owner other)
{
	return one.kind == other.kind && one.id == other.id;
}

static void expect_owners(struct stack_filter *filter, size_t count)
{
	for (size_t i = 0; filter->client.expect && i < count; i++)
		if (!i || !same_owner(filter->frames[i].owner, filter->frames[i - 1].owner))
			filter->client.expect(filter->client.context, filter->frames[i].owner);
}

/* Writes the buffer up to `end`, with names for the first `count` frames, which lie in it. */
static bool write_up_to(struct stack_filter *filter, size_t end, size_t count)
{
	size_t from = 0, last;

	expect_owners(filter, count);
	for (size_t first = 0; first < count && !filter->broken; first = last) {
		struct stack_owner owner = filter->frames[first].owner;

		for (last = first; last < count && last - first < BATCH &&
				   same_owner(filter->frames[last].owner, owner);
		     last++) {
			struct stack_query *query = &filter->queries[last - first];

			*query = query_of(filter, &filter->frames[last]);
			query->follows =
				last > first && is_next_line(filter, &filter->frames[last - 1],
							     &filter->frames[last]);
		}
		memset(filter->names, 0, (last - first) * sizeof(*filter->names));
		if (!filter->client.resolve(filter->client.context, owner, filter->queries,
					    last - first, filter->names)) {
			/* Everything before it is written. */
			if (filter->frames[first].line > from)
				write_text(filter, from, filter->frames[first].line);
			stack_filter_flush(filter);
			return false;
		}
		for (size_t i = first; i < last; i++) {
			const struct pending *pending = &filter->frames[i];
			const struct stack_name *name = &filter->names[i - first];

			from = write_inlined(filter, from, pending, name);
			from = write_frame(filter, from, pending, name);
			from = write_line(filter, from, pending, name);
		}
	}
	write_text(filter, from, end);
	stack_filter_flush(filter);
	return !filter->broken;
}

/* ---- reading -------------------------------------------------------------- */

static void stack_filter_set_owner(struct stack_filter *filter, size_t first,
				   struct stack_owner owner)
{
	for (size_t i = first; i < filter->count; i++)
		filter->frames[i].owner = owner;
}

/* Stacks without an owner are held until none can follow. */
static void follow_stack(struct stack_filter *filter, enum stack_line kind, size_t frames_before)
{
	switch (kind) {
	case STACK_LINE_FRAME:
		filter->stack_lines++;
		if (!filter->in_stack) {
			filter->in_stack = filter->text.owner.kind == STACK_OWNER_NONE &&
					   !filter->client.has_default;
			filter->stack_start = filter->line;
			filter->stack_frames = frames_before;
		}
		break;
	case STACK_LINE_OWNER:
		if (filter->in_stack)
			stack_filter_set_owner(filter, filter->stack_frames, filter->text.behind);
		filter->in_stack = false;
		break;
	case STACK_LINE_OTHER:
		filter->in_stack = false;
		break;
	case STACK_LINE_SOURCE:
	case STACK_LINE_NO_SOURCE:
		break;
	}
}

/* Whether the last frame is on the line that ends at `end`, and its source line goes below. */
static bool may_have_source(const struct stack_filter *filter, size_t end)
{
	const struct pending *last = filter->count ? &filter->frames[filter->count - 1] : NULL;

	return last && last->frame.place == STACK_PLACE_BELOW &&
	       memchr(filter->data + last->line, '\n', end - last->line) == filter->data + end - 1;
}

/* A source line that perf has printed stays; what it prints without one is replaced. */
static void take_source(struct stack_filter *filter, enum stack_line kind)
{
	struct pending *last;

	if ((kind != STACK_LINE_SOURCE && kind != STACK_LINE_NO_SOURCE) ||
	    !may_have_source(filter, filter->line))
		return;
	last = &filter->frames[filter->count - 1];
	last->has_place = kind == STACK_LINE_SOURCE;
	last->place_end = filter->line + filter->text.width_bytes - last->line;
}

/*
 * Whether the frames of the line lie in it, in order and without overlaps. A parser that takes one
 * part of a line for two things has not understood the line.
 */
static bool is_understood(const struct stack_filter *filter, size_t first, size_t size_bytes)
{
	size_t end = 0;

	for (size_t i = first; i < filter->count; i++) {
		const struct stack_frame *frame = &filter->frames[i].frame;

		if (frame->start < end || frame->end < frame->start || frame->end > size_bytes ||
		    frame->image_end < frame->image_start || frame->image_end > size_bytes)
			return false;
		end = frame->end;
		if (!frame->fill_image)
			continue;
		if (frame->image_start < end)
			return false;
		end = frame->image_end;
	}
	return true;
}

static void read_line(struct stack_filter *filter, size_t size_bytes)
{
	size_t frames_before = filter->count;
	enum stack_line kind =
		stack_text_line(&filter->text, filter->data + filter->line, size_bytes);

	/* The line is written unchanged. */
	if (!is_understood(filter, frames_before, size_bytes))
		filter->count = frames_before;
	stack_filter_set_owner(filter, frames_before, filter->text.owner);
	if (kind == STACK_LINE_FRAME && filter->count == frames_before + 1)
		filter->frames[frames_before].has_line_alone = true;
	take_source(filter, kind);
	follow_stack(filter, kind, frames_before);
}

static void read_lines(struct stack_filter *filter)
{
	const char *newline;

	while (!filter->broken) {
		filter->line = filter->scanned_bytes;
		if (filter->searched_bytes < filter->line)
			filter->searched_bytes = filter->line;
		newline = memchr(filter->data + filter->searched_bytes, '\n',
				 filter->size_bytes - filter->searched_bytes);
		if (!newline) {
			filter->searched_bytes = filter->size_bytes;
			/* A line that is passed on unchanged is not kept. */
			if (filter->passing)
				filter->scanned_bytes = filter->size_bytes;
			return;
		}
		filter->scanned_bytes = (size_t)(newline + 1 - filter->data);
		if (!filter->passing)
			read_line(filter, (size_t)(newline - filter->data) - filter->line);
		filter->passing = false;
	}
}

/* Removes written bytes from the buffer. */
static void stack_filter_drop(struct stack_filter *filter, size_t size_bytes, size_t count)
{
	filter->size_bytes -= size_bytes;
	memmove(filter->data, filter->data + size_bytes, filter->size_bytes);
	filter->scanned_bytes -= size_bytes;
	filter->searched_bytes -=
		filter->searched_bytes < size_bytes ? filter->searched_bytes : size_bytes;
	filter->stack_start -= filter->in_stack ? size_bytes : 0;
	filter->stack_frames -= filter->in_stack ? count : 0;
	filter->count -= count;
	if (filter->count)
		memmove(filter->frames, filter->frames + count,
			filter->count * sizeof(*filter->frames));
	for (size_t i = 0; i < filter->count; i++)
		filter->frames[i].line -= size_bytes;
}

/* `is_last`: wait for no more text. */
static bool hand_on(struct stack_filter *filter, bool is_last)
{
	size_t end = filter->in_stack ? filter->stack_start : filter->scanned_bytes;
	size_t count = filter->in_stack ? filter->stack_frames : filter->count;

	/* perf may print the source line of the last frame next. */
	if (filter->client.lines && !filter->in_stack && !is_last && may_have_source(filter, end))
		end = filter->frames[--count].line;
	if (!write_up_to(filter, end, count))
		return false;
	stack_filter_drop(filter, end, count);
	return true;
}

char *stack_filter_room(struct stack_filter *filter, size_t *size_ret)
{
	*size_ret = BUFFER_BYTES - filter->size_bytes;
	if (*size_ret > READ_BYTES)
		*size_ret = READ_BYTES;
	return filter->data + filter->size_bytes;
}

bool stack_filter_push(struct stack_filter *filter, size_t size_bytes)
{
	filter->size_bytes += size_bytes;
	read_lines(filter);
	if (filter->broken || !hand_on(filter, false))
		return false;
	if (filter->size_bytes < STACK_LONGEST_LINE_BYTES)
		return true;
	/* A stack or a line without an end: stop waiting for more. */
	if (filter->in_stack) {
		filter->in_stack = false;
		if (!hand_on(filter, true))
			return false;
	}
	if (filter->size_bytes >= STACK_LONGEST_LINE_BYTES) {
		filter->passing = true;
		filter->scanned_bytes = filter->size_bytes;
		return hand_on(filter, true);
	}
	return true;
}

bool stack_filter_finish(struct stack_filter *filter)
{
	struct stack_missing missing;

	if (filter->scanned_bytes < filter->size_bytes) {
		filter->line = filter->scanned_bytes;
		filter->scanned_bytes = filter->size_bytes;
		if (!filter->passing)
			read_line(filter, filter->size_bytes - filter->line);
	}
	filter->in_stack = filter->passing = false;
	missing = filter->text.missing;
	stack_text_init(&filter->text, take_frame, filter);
	filter->text.missing = missing;
	filter->text.wants_named = filter->client.lines;
	return !filter->broken && hand_on(filter, true);
}

struct stack_missing stack_filter_missing(const struct stack_filter *filter)
{
	return filter->text.missing;
}

uint64_t stack_filter_frames(const struct stack_filter *filter)
{
	return filter->stack_lines;
}
