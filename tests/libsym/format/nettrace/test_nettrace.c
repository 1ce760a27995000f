/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/format/nettrace/nettrace.h"
#include "tests/support/nettrace_builder.h"

struct seen {
	size_t count, stop_after;
	char text[256]; /* "provider/event/version:payload;" of each */
	uint64_t times[8];
};

static bool note_event(void *context, const struct nettrace_event *event)
{
	struct seen *seen = context;
	size_t length = strlen(seen->text);

	snprintf(seen->text + length, sizeof(seen->text) - length, "%s/%u/%u:%.*s;",
		 event->provider, event->event_id, event->version, (int)event->payload_bytes,
		 (const char *)event->payload);
	if (seen->count < sizeof(seen->times) / sizeof(seen->times[0]))
		seen->times[seen->count] = event->time;
	return ++seen->count != seen->stop_after;
}

static void build(struct nettrace_builder *builder, bool compressed)
{
	nettrace_builder_init(builder);
	begin_block(builder, compressed);
	put_kind(builder, 1, "One", 144, 2);
	put_kind(builder, 300, "Two", 7, 0);
	end_block(builder, "MetadataBlock");
	begin_block(builder, true);
	buf_append_string(&builder->block, "what is in here is not looked at");
	end_block(builder, "StackBlock");
	begin_block(builder, compressed);
	put_event(builder, 1, "abc", 3);
	put_event(builder, 300, "", 0);
	put_event(builder, 9, "no kind", 7);
	put_event(builder, 1, "defgh", 5);
	end_block(builder, "EventBlock");
	end_stream(builder);
}

static struct sym_error *parse(const struct nettrace_builder *builder, size_t size_bytes,
			       struct seen *seen)
{
	struct nettrace_sink sink = { .context = seen, .event = note_event };
	/* A copy of the exact size, so that a sanitizer detects a read past the end. */
	void *copy = malloc(size_bytes ? size_bytes : 1);
	struct sym_error *error;

	memcpy(copy, builder->stream.data, size_bytes);
	error = nettrace_parse(copy, size_bytes, &sink);
	free(copy);
	return error;
}

Test(nettrace, delivers_events_of_known_kinds_with_both_headers)
{
	for (int compressed = 0; compressed < 2; compressed++) {
		struct nettrace_builder builder;
		struct seen seen = { 0 };

		build(&builder, compressed);
		cr_assert_null(parse(&builder, builder.stream.size_bytes, &seen));
		cr_assert_str_eq(seen.text, "One/144/2:abc;Two/7/0:;One/144/2:defgh;");
		/* Two kinds come before them, and an event of an unknown kind between them. */
		cr_expect_eq(seen.times[0], (uint64_t)3 << 40);
		cr_expect_eq(seen.times[1], (uint64_t)4 << 40);
		cr_expect_eq(seen.times[2], (uint64_t)6 << 40);
		nettrace_builder_deinit(&builder);
	}
}

Test(nettrace, fills_fields_that_a_compressed_header_omits)
{
	struct nettrace_builder builder;
	struct seen seen = { 0 };

	nettrace_builder_init(&builder);
	begin_block(&builder, true);
	put_kind(&builder, 1, "One", 144, 2);
	end_block(&builder, "MetadataBlock");
	begin_block(&builder, true);
	put_event(&builder, 1, "abc", 3);
	buf_append(&builder.block, "\0\1xyz", 5); /* no flags; time; the same thread, kind, size */
	end_block(&builder, "EventBlock");
	end_stream(&builder);
	cr_assert_null(parse(&builder, builder.stream.size_bytes, &seen));
	cr_assert_str_eq(seen.text, "One/144/2:abc;One/144/2:xyz;");
	cr_expect_eq(seen.times[1], seen.times[0] + 1);
	nettrace_builder_deinit(&builder);
}

Test(nettrace, stops_when_the_sink_returns_false)
{
	struct nettrace_builder builder;
	struct seen seen = { .stop_after = 1 };

	build(&builder, true);
	cr_assert_null(parse(&builder, builder.stream.size_bytes, &seen));
	cr_assert_eq(seen.count, 1);
	nettrace_builder_deinit(&builder);
}

Test(nettrace, converts_utf16_to_utf8)
{
	static const uint8_t text[] = { 'a',  0,    0xdf, 0,    0x70, 0x65, 0x3d, 0xd8,
					0x00, 0xde, 0x00, 0xdc, 0,    0,    'z',  0 };
	struct reader reader = reader_over(text, sizeof(text));
	struct buf out;

	buf_init(&out, 100);
	nettrace_read_string(&reader, &out);
	cr_assert_str_eq(buf_string(&out), "a\xc3\x9f\xe6\x95\xb0\xf0\x9f\x98\x80\xef\xbf\xbd");
	cr_assert_eq(reader.position, 14);
	buf_deinit(&out);
}

Test(nettrace, rejects_a_stream_truncated_anywhere)
{
	struct nettrace_builder builder;

	build(&builder, true);
	for (size_t size = 0; size < builder.stream.size_bytes; size++) {
		struct seen seen = { 0 };
		AUTO_ERROR struct sym_error *error = parse(&builder, size, &seen);

		cr_assert_not_null(error, "%zu bytes of %zu were accepted", size,
				   builder.stream.size_bytes);
		cr_assert_eq(sym_error_code(error), SYM_ERROR_FORMAT);
	}
	nettrace_builder_deinit(&builder);
}

Test(nettrace, rejects_other_versions)
{
	static const char text[] = "Nettrace\0\0\0\0\7\0\0\0\0\0\0\0 and more of what follows";
	struct nettrace_sink sink = { .event = note_event };
	AUTO_ERROR struct sym_error *error = nettrace_parse(text, sizeof(text), &sink);

	cr_assert_eq(sym_error_code(error), SYM_ERROR_UNSUPPORTED);
}

Test(nettrace, survives_any_wrong_byte)
{
	struct nettrace_builder builder;

	build(&builder, true);
	for (size_t i = 0; i < builder.stream.size_bytes; i++)
		for (int bit = 0; bit < 8; bit++) {
			struct seen seen = { 0 };

			builder.stream.data[i] ^= (char)(1 << bit);
			sym_error_destroy(parse(&builder, builder.stream.size_bytes, &seen));
			cr_assert_leq(seen.count, 4);
			builder.stream.data[i] ^= (char)(1 << bit);
		}
	nettrace_builder_deinit(&builder);
}

/* The number of gaps that a stream with `events` events reports. */
static uint64_t count_gaps(const struct nettrace_builder *builder, size_t events)
{
	struct seen seen = { 0 };
	struct nettrace_sink sink = { .context = &seen, .event = note_event };
	struct nettrace_stream *stream;
	uint64_t gaps;
	size_t used;

	cr_assert_null(nettrace_stream_create(&sink, &stream));
	cr_assert_null(nettrace_stream_feed(stream, builder->stream.data,
					    builder->stream.size_bytes, &used));
	cr_assert_eq(seen.count, events);
	gaps = nettrace_stream_gaps(stream);
	nettrace_stream_destroy(stream);
	return gaps;
}

Test(nettrace, counts_missing_events_with_both_headers)
{
	for (int compressed = 0; compressed < 2; compressed++)
		for (int missing = 0; missing < 2; missing++) {
			static const uint64_t point[][2] = { { 1, 3 }, { 2, 1 } };
			struct nettrace_builder builder;

			nettrace_builder_init(&builder);
			begin_block(&builder, compressed);
			put_kind(&builder, 1, "One", 144, 2);
			end_block(&builder, "MetadataBlock");
			begin_block(&builder, compressed);
			builder.thread = 1;
			put_event(&builder, 1, "a", 1);
			put_event(&builder, 1, "b", 1);
			builder.thread = 2;
			builder.event_number = 0;
			put_event(&builder, 1, "c", 1);
			builder.thread = 1;
			builder.event_number = missing ? 3 : 2;
			put_event(&builder, 1, "d", 1);
			end_block(&builder, "EventBlock");
			put_point(&builder, point, 2);
			cr_assert_eq(count_gaps(&builder, 4), (uint64_t)missing);
			nettrace_builder_deinit(&builder);
		}
}

Test(nettrace, continues_the_count_that_a_compressed_header_omits)
{
	struct nettrace_builder builder;

	nettrace_builder_init(&builder);
	begin_block(&builder, true);
	put_kind(&builder, 1, "One", 144, 2);
	end_block(&builder, "MetadataBlock");
	begin_block(&builder, true);
	put_event(&builder, 1, "abc", 3);
	buf_append(&builder.block, "\0\1xyz", 5);
	builder.header_number = ++builder.event_number;
	put_event(&builder, 1, "def", 3);
	end_block(&builder, "EventBlock");
	cr_assert_eq(count_gaps(&builder, 3), 0);
	nettrace_builder_deinit(&builder);
}

/* Feeds a stream in pieces of `step` bytes, and passes unused bytes again. */
static struct sym_error *feed(const struct nettrace_builder *builder, size_t step,
			      struct seen *seen, bool *ended_ret)
{
	struct nettrace_sink sink = { .context = seen, .event = note_event };
	struct nettrace_stream *stream = NULL;
	struct sym_error *error = nettrace_stream_create(&sink, &stream);
	size_t done = 0, arrived = 0, used;

	while (!error && arrived < builder->stream.size_bytes) {
		void *copy;

		arrived = arrived + step < builder->stream.size_bytes ? arrived + step
								      : builder->stream.size_bytes;
		copy = malloc(arrived - done);
		memcpy(copy, builder->stream.data + done, arrived - done);
		error = nettrace_stream_feed(stream, copy, arrived - done, &used);
		free(copy);
		if (!error)
			done += used;
	}
	*ended_ret = nettrace_stream_ended(stream);
	nettrace_stream_destroy(stream);
	return error;
}

Test(nettrace, delivers_the_same_events_from_pieces_of_any_size)
{
	for (int compressed = 0; compressed < 2; compressed++) {
		struct nettrace_builder builder;
		struct seen whole = { 0 };

		build(&builder, compressed);
		cr_assert_null(parse(&builder, builder.stream.size_bytes, &whole));
		for (size_t step = 1; step <= builder.stream.size_bytes; step++) {
			struct seen seen = { 0 };
			bool ended;

			cr_assert_null(feed(&builder, step, &seen, &ended), "step %zu", step);
			cr_assert_str_eq(seen.text, whole.text, "step %zu", step);
			cr_assert(ended);
		}
		nettrace_builder_deinit(&builder);
	}
}

Test(nettrace, rejects_pieces_where_it_rejects_the_whole)
{
	struct nettrace_builder builder;

	build(&builder, true);
	for (size_t at = 0; at < builder.stream.size_bytes; at++) {
		struct seen whole = { 0 }, seen = { 0 };
		struct sym_error *error, *fed;
		bool ended;

		builder.stream.data[at] ^= 0x55;
		error = parse(&builder, builder.stream.size_bytes, &whole);
		fed = feed(&builder, 7, &seen, &ended);
		/* Half of an object is not an error in a stream that may continue. */
		cr_assert(fed ? error != NULL : (!error || !ended), "byte %zu", at);
		if (!error)
			cr_assert_str_eq(seen.text, whole.text, "byte %zu", at);
		sym_error_destroy(error);
		sym_error_destroy(fed);
		builder.stream.data[at] ^= 0x55;
	}
	nettrace_builder_deinit(&builder);
}
