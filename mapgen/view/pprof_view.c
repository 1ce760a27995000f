/* SPDX-License-Identifier: MIT */
/*
 * pprof's profile.proto (github.com/google/pprof/proto/profile.proto), gzipped. A message is a
 * list of fields, each with a key, number << 3 | wire type: 0 is a varint, 2 a length and bytes.
 *
 *   Profile    1 sample types, 2 samples, 3 mappings, 4 locations, 5 functions, 6 strings,
 *              10 duration in ns, 11 type and 12 value of the period
 *   ValueType  1 type, 2 unit                     Sample    1 locations, 2 values, 3 labels
 *   Mapping    1 id, 5 file, 7 has functions      Location  1 id, 2 mapping, 4 lines
 *   Function   1 id, 2 name, 3 full name, 4 file  Line      1 function, 2 line
 *   Label      1 key, 2 text, 3 number
 *
 * Texts are numbers of strings; string 0 is empty. Samples have locations innermost first.
 */
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "libsym/base/buf.h"
#include "libsym/base/cleanup.h"
#include "libsym/error.h"
#include "mapgen/view/frame_text.h"
#include "mapgen/view/view.h"

enum {
	NAME_LIMIT = 1 << 20,
	WIRE_VARINT = 0,
	WIRE_BYTES = 2,
	GZIP_WINDOW = 15 + 16,
	CHUNK_BYTES = 1 << 16,
};

static const size_t message_limit = (size_t)1 << 32;

struct writing {
	const struct view *view;
	const uint32_t *groups;
	uint32_t *with_lines; /* by function: the first of its frames that has a line */
	struct buf profile, strings, message, part, text;
	uint64_t string_count;
};

/* ---- messages -------------------------------------------------------------------------------- */

static void put_varint(struct buf *buf, uint64_t value)
{
	while (value >= 0x80) {
		buf_append_char(buf, (char)(value | 0x80));
		value >>= 7;
	}
	buf_append_char(buf, (char)value);
}

static void put_number(struct buf *buf, unsigned int field, uint64_t value)
{
	if (!value)
		return; /* what is not there is 0 */
	put_varint(buf, field << 3 | WIRE_VARINT);
	put_varint(buf, value);
}

static void put_bytes(struct buf *buf, unsigned int field, const void *bytes, size_t count)
{
	put_varint(buf, field << 3 | WIRE_BYTES);
	put_varint(buf, count);
	buf_append(buf, bytes, count);
}

static void put_message(struct buf *buf, unsigned int field, struct buf *message)
{
	put_bytes(buf, field, message->data ? message->data : "", message->size_bytes);
	buf_clear(message);
}

/* Number of a new string. */
static uint64_t add_string(struct writing *writing, const char *text)
{
	put_bytes(&writing->strings, 6, text, strlen(text));
	return writing->string_count++;
}

static void put_type(struct writing *writing, unsigned int field, const char *type,
		     const char *unit)
{
	put_number(&writing->message, 1, add_string(writing, type));
	put_number(&writing->message, 2, add_string(writing, unit));
	put_message(&writing->profile, field, &writing->message);
}

/* ---- functions ------------------------------------------------------------------------------- */

static const struct profile_frame *frame_at(const struct writing *writing, uint32_t number)
{
	return frame_table_at(writing->view->profile->frames, number);
}

/* Each line of a function is a location; without lines the function is one. */
static uint32_t location_of(const struct writing *writing, uint32_t number)
{
	return frame_at(writing, number)->line ? number : writing->groups[number];
}

/* A function has the number + 1 of the first of its frames. Its file is that of its lines, or its
 * URL, or else its image. */
static void put_function(struct writing *writing, uint32_t number)
{
	const struct profile_frame *frame = frame_at(writing, number);
	uint32_t with_line = writing->with_lines[number];
	const char *file = with_line == FRAME_NONE
				   ? frame->image
				   : view_source_file(writing->view, frame_at(writing, with_line));
	const char *name;

	buf_clear(&writing->text);
	frame_text_append(&writing->text, frame, writing->view->names);
	name = buf_string(&writing->text);
	put_number(&writing->message, 1, number + 1);
	put_number(&writing->message, 2, add_string(writing, name ? name : ""));
	put_number(&writing->message, 3, add_string(writing, frame->name));
	put_number(&writing->message, 4, *file ? add_string(writing, file) : 0);
	put_message(&writing->profile, 5, &writing->message);
}

static void put_location(struct writing *writing, uint32_t number)
{
	put_number(&writing->message, 1, number + 1);
	put_number(&writing->part, 1, writing->groups[number] + 1);
	put_number(&writing->part, 2, frame_at(writing, number)->line);
	put_message(&writing->message, 4, &writing->part);
	put_message(&writing->profile, 4, &writing->message);
}

static void put_frames(struct writing *writing)
{
	size_t count = frame_table_count(writing->view->profile->frames);

	for (uint32_t i = 0; i < count; i++)
		writing->with_lines[i] = FRAME_NONE;
	for (uint32_t i = (uint32_t)count; i-- > 0;)
		if (frame_at(writing, i)->line)
			writing->with_lines[writing->groups[i]] = i;
	for (uint32_t i = 0; i < count; i++) {
		if (writing->groups[i] == i)
			put_function(writing, i);
		if (location_of(writing, i) == i)
			put_location(writing, i);
	}
}

/* ---- samples --------------------------------------------------------------------------------- */

struct thread_strings {
	uint64_t process, thread; /* 0: not made yet */
};

static void put_label(struct writing *writing, uint64_t key, uint64_t text, uint64_t number)
{
	put_number(&writing->part, 1, key);
	put_number(&writing->part, 2, text);
	put_number(&writing->part, 3, number);
	put_message(&writing->message, 3, &writing->part);
}

static void put_sample(struct writing *writing, const struct selected *item,
		       const struct thread_strings *strings, const uint64_t keys[3])
{
	const struct profile_thread *thread =
		&writing->view->profile->threads.threads[item->thread];

	for (uint32_t i = item->frame_count; i > 0; i--)
		put_varint(&writing->part, location_of(writing, item->frames[i - 1]) + 1);
	put_message(&writing->message, 1, &writing->part);
	put_varint(&writing->part, item->count);
	put_varint(&writing->part, item->weight);
	put_message(&writing->message, 2, &writing->part);
	put_label(writing, keys[0], strings->process, 0);
	put_label(writing, keys[1], strings->thread, 0);
	put_label(writing, keys[2], 0, (uint64_t)thread->tid);
	put_message(&writing->profile, 2, &writing->message);
}

static struct sym_error *put_samples(struct writing *writing, const struct selection *selection)
{
	const struct thread_table *threads = &writing->view->profile->threads;
	struct thread_strings *strings AUTO_FREE =
		calloc(threads->thread_count + 1, sizeof(*strings));
	const uint64_t keys[] = { add_string(writing, "process"), add_string(writing, "thread"),
				  add_string(writing, "tid") };

	if (!strings)
		return &sym_error_no_memory;
	for (size_t i = 0; i < selection->count; i++) {
		const struct selected *item = &selection->items[i];
		const struct profile_thread *thread = &threads->threads[item->thread];
		struct thread_strings *own = &strings[item->thread];

		if (!own->process) {
			own->process =
				add_string(writing, threads->processes[thread->process].name);
			own->thread = add_string(writing, thread->name);
		}
		put_sample(writing, item, own, keys);
	}
	return NULL;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static struct sym_error *write_gzipped(const struct buf *bytes, FILE *to)
{
	uint8_t chunk[CHUNK_BYTES];
	z_stream stream = { 0 };
	size_t left = bytes->size_bytes;
	int status = Z_OK;

	if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
			 Z_DEFAULT_STRATEGY))
		return &sym_error_no_memory;
	stream.next_in = (Bytef *)bytes->data;
	while (status == Z_OK) {
		if (!stream.avail_in) {
			stream.avail_in = left < CHUNK_BYTES ? (uInt)left : CHUNK_BYTES;
			left -= stream.avail_in;
		}
		stream.next_out = chunk;
		stream.avail_out = sizeof(chunk);
		status = deflate(&stream, left ? Z_NO_FLUSH : Z_FINISH);
		fwrite(chunk, 1, sizeof(chunk) - stream.avail_out, to);
	}
	deflateEnd(&stream);
	return NULL;
}

static struct sym_error *make_profile(struct writing *writing, const struct selection *selection)
{
	const struct profile *profile = writing->view->profile;
	const struct profile_event *event = &profile->events[selection->event];
	const char *unit = event->is_time                      ? "nanoseconds"
			   : event->unit == PROFILE_UNIT_BYTES ? "bytes"
							       : "count";
	struct sym_error *error;

	add_string(writing, "");
	put_type(writing, 1, "samples", "count");
	put_type(writing, 1, event->name, unit);
	put_frames(writing);
	error = put_samples(writing, selection);
	put_number(&writing->profile, 10,
		   profile->end_ns > profile->begin_ns ? profile->end_ns - profile->begin_ns : 0);
	put_type(writing, 11, event->name, unit);
	put_number(&writing->profile, 12, 1);
	buf_append(&writing->profile, writing->strings.data ? writing->strings.data : "",
		   writing->strings.size_bytes);
	if (!error && (writing->profile.failure || writing->strings.failure ||
		       writing->message.failure || writing->part.failure))
		error = &sym_error_no_memory;
	return error;
}

static struct sym_error *write_stacks(const struct view *view, const struct selection *selection,
				      const uint32_t *groups, FILE *to)
{
	uint32_t *with_lines AUTO_FREE =
		calloc(frame_table_count(view->profile->frames) + 1, sizeof(*with_lines));
	struct writing writing = { .view = view, .groups = groups, .with_lines = with_lines };
	struct buf *const bufs[] = { &writing.profile, &writing.strings, &writing.message,
				     &writing.part, &writing.text };
	struct sym_error *error;

	if (!with_lines)
		return &sym_error_no_memory;
	for (size_t i = 0; i < sizeof(bufs) / sizeof(*bufs); i++)
		buf_init(bufs[i], message_limit);
	error = make_profile(&writing, selection);
	if (!error)
		error = write_gzipped(&writing.profile, to);
	for (size_t i = 0; i < sizeof(bufs) / sizeof(*bufs); i++)
		buf_deinit(bufs[i]);
	return error;
}

struct sym_error *pprof_view_write(const struct view *view, FILE *to)
{
	return view_write_stacks(view, write_stacks, to);
}
