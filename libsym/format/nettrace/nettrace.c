/* SPDX-License-Identifier: MIT */
/*
 * How a stream is read: parse_next() reads one tag and its object (version 6: one block). An object
 * is a block of event kinds, of events, of stacks, or a sequence point. A metadata block declares
 * kinds (nettrace_kinds.h); an event refers to its kind and its stack by number
 * (nettrace_events.c).
 *
 * A stream from a socket arrives in pieces. nettrace_stream_feed() parses an object only when all
 * its bytes are there (is_object_whole()), so no object is parsed in part.
 */
#include "libsym/format/nettrace/nettrace.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/format/nettrace/nettrace_stream.h"
#include "libsym/format/nettrace/nettrace_trace.h"

enum tag {
	TAG_NULL = 1,
	TAG_BEGIN = 5,
	TAG_END = 6,
};

enum {
	TRACE_BYTES = 48,
	MAX_TYPE_NAME = 64,
	VERSION_6 = 6,
};

static void parse_point(struct nettrace_stream *stream, struct reader block)
{
	stream->no_memory |= !nettrace_threads_point(&stream->threads, &block);
	if (!reader_ok(&block))
		reader_fail(&stream->reader, "malformed block");
	nettrace_stacks_clear(&stream->stacks);
}

/* ---- objects ------------------------------------------------------------------- */

static bool read_type_name(struct reader *reader, char name[MAX_TYPE_NAME])
{
	uint32_t length;
	const uint8_t *bytes;

	if (reader_u8(reader) != TAG_BEGIN || reader_u8(reader) != TAG_NULL)
		reader_fail(reader, "object without a type");
	reader_skip(reader, 8); /* version of the type, minimum version of its reader */
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
		nettrace_trace_read_v4(&stream->trace,
				       reader_part(reader, reader->position, TRACE_BYTES));
		reader_skip(reader, TRACE_BYTES);
		stream->has_trace = reader_ok(reader);
	} else {
		size_bytes = reader_u32(reader);
		while (reader_ok(reader) && (stream->base + reader->position) % 4)
			reader_skip(reader, 1);
		block = reader_part(reader, reader->position, size_bytes);
		reader_skip(reader, size_bytes);
		if (!reader_ok(reader))
			return;
		if (!strcmp(name, "EventBlock") || !strcmp(name, "MetadataBlock"))
			nettrace_read_events(stream, block, name[0] == 'M');
		else if (!strcmp(name, "StackBlock"))
			stream->no_memory |= !nettrace_stacks_read(&stream->stacks, block);
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

/* "Nettrace", u32 0, u32 major version, u32 minor version. */
static struct sym_error *parse_head_v6(struct nettrace_stream *stream)
{
	uint32_t major;

	reader_seek(&stream->reader, 12);
	major = reader_u32(&stream->reader);
	reader_skip(&stream->reader, 4);
	if (!reader_ok(&stream->reader))
		return sym_error_from_reader(&stream->reader, NULL, 0, "nettrace stream");
	if (major != VERSION_6)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"nettrace stream of version %u; 4 to 6 are read", major);
	stream->is_v6 = true;
	return NULL;
}

static struct sym_error *parse_head(struct nettrace_stream *stream)
{
	struct reader *reader = &stream->reader;
	const uint8_t *bytes;

	if (!reader_left(reader))
		return sym_error_create(SYM_ERROR_FORMAT,
					"the runtime has sent nothing: it runs no .NET code yet "
					"(just started, or suspended until a tool resumes it)");
	if (reader_left(reader) >= 12 && !memcmp(reader->data, "Nettrace\0\0\0\0", 12))
		return parse_head_v6(stream);
	bytes = reader_bytes(reader, HEAD_BYTES);
	if (!bytes)
		return sym_error_from_reader(reader, NULL, 0, "nettrace stream");
	if (memcmp(bytes, head, 8) != 0)
		return sym_error_create(SYM_ERROR_FORMAT, "not a nettrace stream");
	if (memcmp(bytes, head, HEAD_BYTES) != 0)
		return sym_error_create(SYM_ERROR_UNSUPPORTED,
					"nettrace stream of an unknown version");
	return NULL;
}

/* Is the object at the reader, after its first tag, complete? A malformed object counts as
 * complete. */
static bool is_object_whole(const struct nettrace_stream *stream)
{
	struct reader reader = stream->reader;
	char name[MAX_TYPE_NAME];
	uint32_t size_bytes = TRACE_BYTES;

	/* The longest possible header: tags, versions, length and the name. */
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

static bool is_next_whole(struct nettrace_stream *stream)
{
	struct reader before = stream->reader;
	bool is_whole;

	if (stream->is_v6)
		return nettrace_is_v6_whole(stream);
	is_whole = reader_u8(&stream->reader) != TAG_BEGIN || is_object_whole(stream);
	stream->reader = before;
	return is_whole;
}

/* Parses one tag and the object that follows it. */
static void parse_next(struct nettrace_stream *stream)
{
	uint8_t tag;

	if (stream->is_v6) {
		nettrace_read_v6(stream);
		return;
	}
	tag = reader_u8(&stream->reader);
	if (tag == TAG_NULL)
		stream->ended = true;
	else if (tag != TAG_BEGIN)
		reader_fail(&stream->reader, "neither an object nor the end");
	else
		parse_object(stream);
}

static bool is_running(const struct nettrace_stream *stream)
{
	return !stream->ended && !stream->stopped && !stream->no_memory &&
	       reader_ok(&stream->reader);
}

static void nettrace_stream_init(struct nettrace_stream *stream, const struct nettrace_sink *sink)
{
	*stream = (struct nettrace_stream){ .sink = *sink, .trace = { .pointer_bytes = 8 } };
	nettrace_stacks_init(&stream->stacks);
}

static void nettrace_stream_deinit(struct nettrace_stream *stream)
{
	nettrace_kinds_deinit(&stream->kinds);
	nettrace_threads_deinit(&stream->threads);
	nettrace_stacks_deinit(&stream->stacks);
	nettrace_labels_deinit(&stream->labels);
}

struct sym_error *nettrace_parse(const void *data, size_t size_bytes,
				 const struct nettrace_sink *sink)
{
	struct nettrace_stream stream;
	struct sym_error *error;

	nettrace_stream_init(&stream, sink);
	stream.reader = reader_over(data, size_bytes);
	error = parse_head(&stream);
	while (!error && is_running(&stream))
		parse_next(&stream);
	if (!error && stream.no_memory)
		error = &sym_error_no_memory;
	if (!error && !reader_ok(&stream.reader))
		error = sym_error_from_reader(&stream.reader, NULL, 0, "nettrace stream");
	nettrace_stream_deinit(&stream);
	return error;
}

struct sym_error *nettrace_stream_create(const struct nettrace_sink *sink,
					 struct nettrace_stream **ret)
{
	struct nettrace_stream *stream = malloc(sizeof(*stream));

	if (!stream)
		return &sym_error_no_memory;
	nettrace_stream_init(stream, sink);
	*ret = stream;
	return NULL;
}

void nettrace_stream_destroy(struct nettrace_stream *stream)
{
	if (!stream)
		return;
	nettrace_stream_deinit(stream);
	free(stream);
}

struct sym_error *nettrace_stream_feed(struct nettrace_stream *stream, const void *data,
				       size_t size_bytes, size_t *used_ret)
{
	struct sym_error *error = NULL;
	size_t used = 0;

	stream->reader = reader_over(data, size_bytes);
	if (!stream->has_head && size_bytes >= HEAD_BYTES) {
		error = parse_head(stream);
		if (error)
			return error;
		stream->has_head = true;
		used = stream->reader.position;
	}
	while (stream->has_head && is_running(stream) && reader_left(&stream->reader)) {
		if (!is_next_whole(stream))
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

const struct nettrace_trace *nettrace_stream_trace(const struct nettrace_stream *stream)
{
	return stream->has_trace ? &stream->trace : NULL;
}

uint64_t nettrace_stream_unknown_kinds(const struct nettrace_stream *stream)
{
	return stream->unknown_kinds;
}

uint64_t nettrace_stream_missing_stacks(const struct nettrace_stream *stream)
{
	return stream->missing_stacks;
}

uint64_t nettrace_stream_gaps(const struct nettrace_stream *stream)
{
	return stream->threads.gaps;
}

bool nettrace_stream_ended(const struct nettrace_stream *stream)
{
	return stream->ended;
}
