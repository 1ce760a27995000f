/* SPDX-License-Identifier: MIT */
#include <criterion/criterion.h>
#include <stdio.h>
#include <unistd.h>

#include "libsym/format/nettrace/nettrace.h"
#include "mapgen/cli/temporary_file.h"
#include "mapgen/record/stream_ring.h"
#include "tests/support/nettrace_builder.h"

static const char provider[] = "Sample";

/* A stream that grows, and what the ring has taken of it. */
struct written {
	struct nettrace_builder builder;
	struct stream_ring ring;
	FILE *file;
	size_t taken_bytes;
};

static void begin(struct written *written)
{
	*written = (struct written){ .file = NULL };
	cr_assert_null(temporary_file_stream(&written->file));
	nettrace_builder_init(&written->builder);
	stream_ring_init(&written->ring);
}

static void end(struct written *written)
{
	nettrace_builder_deinit(&written->builder);
	stream_ring_deinit(&written->ring);
	fclose(written->file);
}

static void take(struct written *written, uint64_t last_ns)
{
	const struct buf *stream = &written->builder.stream;
	size_t bytes = stream->size_bytes - written->taken_bytes;
	const uint8_t *data = (const uint8_t *)stream->data + written->taken_bytes;

	cr_assert_eq(pwrite(fileno(written->file), data, bytes, (off_t)written->taken_bytes),
		     (ssize_t)bytes);
	cr_assert_null(stream_ring_take(&written->ring, data, bytes, last_ns));
	written->taken_bytes = stream->size_bytes;
}

/* A kind, an event of it with as many bytes, and a sequence point. */
static void put_piece(struct written *written, uint32_t number, size_t payload_bytes)
{
	static const uint64_t threads[1][2];
	static const char payload[100];

	begin_block(&written->builder, true);
	put_kind(&written->builder, number, provider, number, 1);
	end_block(&written->builder, "MetadataBlock");
	begin_block(&written->builder, true);
	put_event(&written->builder, number, payload, payload_bytes);
	end_block(&written->builder, "EventBlock");
	put_point(&written->builder, threads, 0);
}

struct seen {
	uint32_t ids[16];
	size_t count;
};

static bool note_event(void *context, const struct nettrace_event *event)
{
	struct seen *seen = context;

	cr_assert_lt(seen->count, 16);
	seen->ids[seen->count++] = event->event_id;
	return true;
}

/* Events of what the ring writes. */
static struct seen read_back(const struct written *written)
{
	FILE *to = tmpfile();
	struct seen seen = { 0 };
	const struct nettrace_sink sink = { .context = &seen, .event = note_event };
	char bytes[1 << 16];
	ssize_t count;

	cr_assert_null(stream_ring_write(&written->ring, fileno(written->file), to));
	count = pread(fileno(to), bytes, sizeof(bytes), 0);
	cr_assert_gt(count, 0);
	cr_assert_null(nettrace_parse(bytes, (size_t)count, &sink));
	fclose(to);
	return seen;
}

Test(stream_ring, keeps_all_as_it_came)
{
	struct written written;
	struct seen seen;

	begin(&written);
	for (uint32_t i = 1; i <= 3; i++) {
		put_piece(&written, i, i);
		take(&written, i * 1000);
	}
	end_stream(&written.builder);
	take(&written, 3000);
	stream_ring_drop(&written.ring, 0, fileno(written.file));
	seen = read_back(&written);
	cr_expect_eq(seen.count, 3);
	end(&written);
}

/* Kinds are described once, at any time. The sizes have all remainders, as blocks are aligned. */
Test(stream_ring, drops_events_before_a_time_and_keeps_what_describes_others)
{
	struct written written;
	struct seen seen;

	begin(&written);
	for (uint32_t i = 1; i <= 9; i++) {
		put_piece(&written, i, i);
		begin_block(&written.builder, true);
		put_event(&written.builder, 1, "", 0);
		end_block(&written.builder, "EventBlock");
		take(&written, i * 1000);
	}
	stream_ring_drop(&written.ring, 8000, fileno(written.file));
	seen = read_back(&written);
	/* The piece of the time 8000 begins behind the sequence point of 7000. */
	cr_assert_geq(seen.count, 4);
	cr_assert_leq(seen.count, 6);
	cr_expect_eq(seen.ids[seen.count - 2], 9);
	cr_expect_eq(seen.ids[seen.count - 1], 1);
	for (size_t i = 0; i < seen.count; i++)
		cr_expect(seen.ids[i] == 1 || seen.ids[i] >= 7, "event %u is too old", seen.ids[i]);
	end(&written);
}

static size_t count_segments(const struct stream_ring *ring)
{
	uint64_t last = 0;
	size_t count = 0;

	for (size_t i = 0; i < ring->count; i++) {
		uint64_t segment = ring->ranges[i].segment;

		count += segment > last;
		last = segment ? segment : last;
	}
	return count;
}

Test(stream_ring, stays_small_while_time_goes_on)
{
	struct written written;

	begin(&written);
	for (uint32_t i = 1; i <= 2000; i++) {
		put_piece(&written, 1, 50);
		take(&written, (uint64_t)i * 1000);
		stream_ring_drop(&written.ring, i > 10 ? (uint64_t)(i - 10) * 1000 : 0,
				 fileno(written.file));
		cr_assert_leq(count_segments(&written.ring), 13);
	}
	end(&written);
}

Test(stream_ring, takes_bytes_that_are_no_object)
{
	static const uint8_t noise[64] = { 5, 5, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255 };
	struct written written;

	begin(&written);
	put_piece(&written, 1, 4);
	take(&written, 1000);
	cr_assert_null(stream_ring_take(&written.ring, noise, sizeof(noise), 2000));
	cr_assert_null(stream_ring_take(&written.ring, noise, 1, 2000));
	cr_expect_eq(read_back(&written).count, 1);
	end(&written);
}
