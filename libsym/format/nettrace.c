/* SPDX-License-Identifier: MIT */
#include "libsym/format/nettrace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/format/nettrace_threads.h"
#include "libsym/limits.h"

enum tag {
	TAG_NULL = 1,
	TAG_BEGIN = 5,
	TAG_END = 6,
};

enum {
	TRACE_BYTES = 48,
	MAX_KINDS = 1 << 16, /* kinds of event in one stream; a runtime has some hundreds */
	MAX_TYPE_NAME = 64,
};

/* A kind of event, by the number that the stream gives it. */
struct kind {
	char *provider; /* NULL: not told */
	uint32_t event_id;
	uint32_t version;
};

struct nettrace_stream {
	struct reader reader;
	uint64_t base; /* offset in the stream of what the reader has */
	struct nettrace_sink sink;
	struct kind *kinds;
	size_t kind_count;
	struct nettrace_threads threads;
	bool has_head;
	bool ended; /* the end mark was there */
	bool stopped;
	bool no_memory;
};

/* ---- numbers and strings ------------------------------------------------- */

static uint64_t read_varint(struct reader *reader)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 70; shift += 7) {
		uint8_t byte = reader_u8(reader);

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	reader_fail(reader, "malformed number");
	return 0;
}

static void append_utf8(struct buf *out, uint32_t character)
{
	if (character < 0x80) {
		buf_append_char(out, (char)character);
		return;
	}
	if (character < 0x800) {
		buf_append_char(out, (char)(0xc0 | character >> 6));
	} else {
		if (character < 0x10000) {
			buf_append_char(out, (char)(0xe0 | character >> 12));
		} else {
			buf_append_char(out, (char)(0xf0 | character >> 18));
			buf_append_char(out, (char)(0x80 | (character >> 12 & 0x3f)));
		}
		buf_append_char(out, (char)(0x80 | (character >> 6 & 0x3f)));
	}
	buf_append_char(out, (char)(0x80 | (character & 0x3f)));
}

void nettrace_read_string(struct reader *reader, struct buf *out)
{
	for (;;) {
		uint32_t unit = reader_u16(reader), next;

		if (!unit)
			return; /* also when the reader failed */
		if ((unit & 0xfc00) == 0xd800 && reader_left(reader) >= 2) {
			next = (uint32_t)reader->data[reader->position] |
			       (uint32_t)reader->data[reader->position + 1] << 8;
			if ((next & 0xfc00) == 0xdc00) {
				reader_skip(reader, 2);
				append_utf8(out, 0x10000 + ((unit & 0x3ff) << 10) + (next & 0x3ff));
				continue;
			}
		}
		append_utf8(out, (unit & 0xf800) == 0xd800 ? 0xfffd : unit);
	}
}

/* ---- kinds of event ------------------------------------------------------- */

static bool grow_kinds(struct nettrace_stream *stream, uint32_t number)
{
	size_t count = stream->kind_count ? stream->kind_count : 64;
	struct kind *kinds;

	if (number < stream->kind_count)
		return true;
	while (count <= number)
		count *= 2;
	kinds = reallocarray(stream->kinds, count, sizeof(*kinds));
	if (!kinds) {
		stream->no_memory = true;
		return false;
	}
	memset(kinds + stream->kind_count, 0, (count - stream->kind_count) * sizeof(*kinds));
	stream->kinds = kinds;
	stream->kind_count = count;
	return true;
}

/* i32 number, provider, i32 event id, name, i64 keywords, i32 version, ... */
static void take_kind(struct nettrace_stream *stream, struct reader payload)
{
	uint32_t number = reader_u32(&payload), event_id, version;
	struct buf provider, name;
	char *text = NULL;

	buf_init(&provider, 4096);
	buf_init(&name, LIMIT_NAME_BYTES);
	nettrace_read_string(&payload, &provider);
	event_id = reader_u32(&payload);
	nettrace_read_string(&payload, &name);
	reader_skip(&payload, 8);
	version = reader_u32(&payload);
	if (reader_ok(&payload) && number < MAX_KINDS && provider.failure != BUF_TOO_BIG) {
		text = buf_steal(&provider, NULL);
		stream->no_memory |= !text;
	}
	if (text && grow_kinds(stream, number)) {
		free(stream->kinds[number].provider);
		stream->kinds[number] = (struct kind){ text, event_id, version };
	} else {
		free(text);
	}
	buf_deinit(&provider);
	buf_deinit(&name);
}

/* A compressed header repeats fields of the one before in its block. */
struct header {
	uint32_t number; /* of the kind */
	uint32_t event_number;
	uint64_t thread; /* that wrote the event */
	uint64_t time;
	uint32_t payload_bytes;
};

static void take_event(struct nettrace_stream *stream, const struct header *header,
		       const uint8_t *payload)
{
	struct nettrace_event event = { .time = header->time,
					.payload = payload,
					.payload_bytes = header->payload_bytes };
	uint32_t number = header->number;

	number &= 0x7fffffff; /* the top bit says "sorted" */
	if (number >= stream->kind_count || !stream->kinds[number].provider)
		return;
	event.provider = stream->kinds[number].provider;
	event.event_id = stream->kinds[number].event_id;
	event.version = stream->kinds[number].version;
	if (!stream->sink.event(stream->sink.context, &event))
		stream->stopped = true;
}

/* ---- blocks ------------------------------------------------------------------ */

static const uint8_t *read_compressed(struct reader *block, struct header *header)
{
	uint8_t flags = reader_u8(block);

	if (flags & 0x01)
		header->number = (uint32_t)read_varint(block);
	if (flags & 0x02) {
		header->event_number += (uint32_t)read_varint(block);
		header->thread = read_varint(block);
		read_varint(block); /* processor */
	}
	header->event_number++;
	if (flags & 0x04)
		read_varint(block); /* thread */
	if (flags & 0x08)
		read_varint(block); /* stack */
	header->time += read_varint(block);
	if (flags & 0x10)
		reader_skip(block, 16); /* activity */
	if (flags & 0x20)
		reader_skip(block, 16); /* related activity */
	if (flags & 0x80)
		header->payload_bytes = (uint32_t)read_varint(block);
	return reader_bytes(block, header->payload_bytes);
}

static const uint8_t *read_plain(struct reader *block, struct header *header)
{
	size_t start = block->position;
	uint32_t size_bytes = reader_u32(block);
	const uint8_t *payload;

	header->number = reader_u32(block);
	header->event_number = reader_u32(block);
	reader_skip(block, 8); /* thread */
	header->thread = reader_u64(block);
	reader_skip(block, 8); /* processor, stack */
	header->time = reader_u64(block);
	reader_skip(block, 32); /* two activities */
	header->payload_bytes = reader_u32(block);
	payload = reader_bytes(block, header->payload_bytes);
	if (reader_ok(block))
		reader_seek(block, start);
	reader_skip(block, 4);
	reader_skip(block, size_bytes);
	while (reader_left(block) && (block->position - start) % 4)
		reader_skip(block, 1);
	return payload;
}

static void parse_block(struct nettrace_stream *stream, struct reader block, bool is_metadata)
{
	uint16_t header_bytes = reader_u16(&block);
	bool is_compressed = reader_u16(&block) & 1;
	struct header header = { 0 };

	reader_seek(&block, header_bytes);
	while (reader_left(&block) && !stream->stopped && !stream->no_memory) {
		const uint8_t *payload = is_compressed ? read_compressed(&block, &header)
						       : read_plain(&block, &header);

		if (!payload || !reader_ok(&block))
			break;
		if (is_metadata) {
			take_kind(stream, reader_over(payload, header.payload_bytes));
			continue;
		}
		stream->no_memory |= !nettrace_threads_event(&stream->threads, header.thread,
							     header.event_number);
		take_event(stream, &header, payload);
	}
	if (!reader_ok(&block))
		reader_fail(&stream->reader, "malformed block");
}

static void parse_point(struct nettrace_stream *stream, struct reader block)
{
	stream->no_memory |= !nettrace_threads_point(&stream->threads, &block);
	if (!reader_ok(&block))
		reader_fail(&stream->reader, "malformed block");
}

/* ---- objects ------------------------------------------------------------------- */

static bool read_type_name(struct reader *reader, char name[MAX_TYPE_NAME])
{
	uint32_t length;
	const uint8_t *bytes;

	if (reader_u8(reader) != TAG_BEGIN || reader_u8(reader) != TAG_NULL)
		reader_fail(reader, "object without a type");
	reader_skip(reader, 8); /* version of the type, least version of its reader */
	length = reader_u32(reader);
	if (length >= MAX_TYPE_NAME)
		reader_fail(reader, "type with a long name");
	bytes = reader_bytes(reader, length);
	if (reader_u8(reader) != TAG_END)
		reader_fail(reader, "type without an end");
	if (!reader_ok(reader))
		return false;
	memcpy(name, bytes, length);
	name[length] = '\0';
	return true;
}

static void parse_object(struct nettrace_stream *stream)
{
	struct reader *reader = &stream->reader;
	char name[MAX_TYPE_NAME];
	struct reader block;
	uint32_t size_bytes;

	if (!read_type_name(reader, name))
		return;
	if (!strcmp(name, "Trace")) {
		reader_skip(reader, TRACE_BYTES);
	} else {
		size_bytes = reader_u32(reader);
		while (reader_ok(reader) && (stream->base + reader->position) % 4)
			reader_skip(reader, 1);
		block = reader_part(reader, reader->position, size_bytes);
		reader_skip(reader, size_bytes);
		if (!reader_ok(reader))
			return;
		if (!strcmp(name, "EventBlock") || !strcmp(name, "MetadataBlock"))
			parse_block(stream, block, name[0] == 'M');
		else if (!strcmp(name, "SPBlock"))
			parse_point(stream, block);
	}
	if (reader_u8(reader) != TAG_END)
		reader_fail(reader, "object without an end");
}

static const char head[] = "Nettrace\x14\0\0\0!FastSerialization.1";

enum {
	HEAD_BYTES = sizeof(head) - 1
};

static struct sym_error *parse_head(struct reader *reader)
{
	const uint8_t *bytes;

	if (!reader_left(reader))
		return sym_error_create(SYM_ERROR_FORMAT,
					"the runtime has sent nothing, as one does that runs no "
					".NET code yet (just begun, or suspended until a tool "
					"resumes it)");
	bytes = reader_bytes(reader, HEAD_BYTES);
	if (!bytes)
		return sym_error_from_reader(reader, NULL, 0, "nettrace stream");
	if (memcmp(bytes, head, 8) != 0)
		return sym_error_create(SYM_ERROR_FORMAT, "this is no nettrace stream");
	if (memcmp(bytes, head, HEAD_BYTES) != 0)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"nettrace stream of an unknown version");
	return NULL;
}

/* Is the object at the reader, behind its first tag, whole? What is malformed counts as whole. */
static bool is_whole(const struct nettrace_stream *stream)
{
	struct reader reader = stream->reader;
	char name[MAX_TYPE_NAME];
	uint32_t size_bytes = TRACE_BYTES;

	/* Tags, versions, length and a name of any allowed length. */
	if (reader_left(&reader) < 2 + 8 + 4)
		return false;
	if (!read_type_name(&reader, name))
		return reader_left(&stream->reader) >= 2 + 8 + 4 + MAX_TYPE_NAME + 1;
	if (strcmp(name, "Trace") != 0) {
		if (reader_left(&reader) < 4)
			return false;
		size_bytes = reader_u32(&reader);
		while (reader_left(&reader) && (stream->base + reader.position) % 4)
			reader_skip(&reader, 1);
	}
	return reader_left(&reader) > size_bytes;
}

/* One tag and what belongs to it. */
static void parse_next(struct nettrace_stream *stream)
{
	uint8_t tag = reader_u8(&stream->reader);

	if (tag == TAG_NULL)
		stream->ended = true;
	else if (tag != TAG_BEGIN)
		reader_fail(&stream->reader, "neither an object nor the end");
	else
		parse_object(stream);
}

static bool goes_on(const struct nettrace_stream *stream)
{
	return !stream->ended && !stream->stopped && !stream->no_memory &&
	       reader_ok(&stream->reader);
}

static void deinit(struct nettrace_stream *stream)
{
	for (size_t i = 0; i < stream->kind_count; i++)
		free(stream->kinds[i].provider);
	free(stream->kinds);
	nettrace_threads_deinit(&stream->threads);
}

struct sym_error *nettrace_parse(const void *data, size_t size_bytes,
				 const struct nettrace_sink *sink)
{
	struct nettrace_stream stream = { .reader = reader_over(data, size_bytes), .sink = *sink };
	struct sym_error *error = parse_head(&stream.reader);

	while (!error && goes_on(&stream))
		parse_next(&stream);
	if (!error && stream.no_memory)
		error = &sym_error_no_memory;
	if (!error && !reader_ok(&stream.reader))
		error = sym_error_from_reader(&stream.reader, NULL, 0, "nettrace stream");
	deinit(&stream);
	return error;
}

struct sym_error *nettrace_stream_create(const struct nettrace_sink *sink,
					 struct nettrace_stream **ret)
{
	struct nettrace_stream *stream = calloc(1, sizeof(*stream));

	if (!stream)
		return &sym_error_no_memory;
	stream->sink = *sink;
	*ret = stream;
	return NULL;
}

void nettrace_stream_destroy(struct nettrace_stream *stream)
{
	if (!stream)
		return;
	deinit(stream);
	free(stream);
}

struct sym_error *nettrace_stream_feed(struct nettrace_stream *stream, const void *data,
				       size_t size_bytes, size_t *used_ret)
{
	struct sym_error *error = NULL;
	size_t used = 0;

	stream->reader = reader_over(data, size_bytes);
	if (!stream->has_head && size_bytes >= HEAD_BYTES) {
		error = parse_head(&stream->reader);
		if (error)
			return error;
		stream->has_head = true;
		used = stream->reader.position;
	}
	while (stream->has_head && goes_on(stream) && reader_left(&stream->reader)) {
		struct reader before = stream->reader;
		uint8_t tag = reader_u8(&stream->reader);
		bool whole = tag != TAG_BEGIN || is_whole(stream);

		stream->reader = before;
		if (!whole)
			break;
		parse_next(stream);
		used = stream->reader.position;
	}
	if (stream->no_memory)
		return &sym_error_no_memory;
	if (!reader_ok(&stream->reader))
		return sym_error_from_reader(&stream->reader, NULL, stream->base,
					     "nettrace stream");
	stream->base += used;
	*used_ret = used;
	return NULL;
}

uint64_t nettrace_stream_gaps(const struct nettrace_stream *stream)
{
	return stream->threads.gaps;
}

bool nettrace_stream_ended(const struct nettrace_stream *stream)
{
	return stream->ended;
}
