/* SPDX-License-Identifier: MIT */
/* Version 6 by microsoft/perfview src/TraceEvent/EventPipe/NetTraceFormat.md. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "libsym/format/nettrace/nettrace.h"
#include "tests/support/nettrace_builder.h"

static struct buf stream, block;

static void begin_stream(void)
{
	buf_init(&stream, 1 << 16);
	buf_init(&block, 1 << 16);
	buf_append_string(&stream, "Nettrace");
	put_u32(&stream, 0);
	put_u32(&stream, 6);
	put_u32(&stream, 0);
}

static void deinit(void)
{
	buf_deinit(&stream);
	buf_deinit(&block);
}

static void put_block(uint8_t kind)
{
	put_u32(&stream, (uint32_t)block.size_bytes | (uint32_t)kind << 24);
	buf_append(&stream, block.data, block.size_bytes);
	buf_clear(&block);
}

/* Shorter than 128 bytes. */
static void put_text(const char *text)
{
	buf_append_char(&block, (char)strlen(text));
	buf_append_string(&block, text);
}

static void put_trace(void)
{
	for (int i = 0; i < 8; i++)
		put_u16(&block, (uint16_t[]){ 2026, 11, 6, 28, 12, 0, 0, 250 }[i]);
	put_u64(&block, 1000);
	put_u64(&block, 1000000000);
	put_u32(&block, 8);
	put_u32(&block, 1);
	put_text("ProcessId");
	put_text("4711");
	put_block(1);
}

static void put_thread(uint8_t number, uint8_t pid, uint8_t tid)
{
	put_u16(&block, 5);
	buf_append_char(&block, (char)number);
	buf_append_char(&block, 2);
	buf_append_char(&block, (char)pid);
	buf_append_char(&block, 3);
	buf_append_char(&block, (char)tid);
}

static void put_metadata(void)
{
	size_t at;

	put_u16(&block, 0);
	at = block.size_bytes;
	put_u16(&block, 0); /* size of the row */
	buf_append_char(&block, 1);
	put_text("Contoso");
	buf_append_char(&block, 9);
	put_text("Placed");
	put_u16(&block, 1); /* one field */
	put_u16(&block, 4);
	put_text("id");
	buf_append_char(&block, NETTRACE_VARUINT);
	put_u16(&block, 4); /* options */
	buf_append(&block, "\x08\x04\x09\x02", 4);
	block.data[at] = (char)(block.size_bytes - at - 2);
	put_block(3);
}

static void put_stack_and_labels(void)
{
	put_u32(&block, 1);
	put_u32(&block, 1);
	put_u32(&block, 16);
	put_u64(&block, 0x1000);
	put_u64(&block, 0x2000);
	put_block(5);
	put_u32(&block, 1);
	put_u32(&block, 1);
	buf_append_char(&block, (char)0x81);
	for (int i = 0; i < 16; i++)
		buf_append_char(&block, (char)(i + 1));
	put_block(8);
}

static void put_events(void)
{
	put_u16(&block, 20);
	put_u16(&block, 1);
	put_u64(&block, 0);
	put_u64(&block, 0);
	/* kind, number and capturing thread, thread, stack, time, labels, size, payload */
	buf_append(&block, "\x9f\1\0\3\0\3\1\x0a\1\2\xac\2", 12);
	/* time, payload */
	buf_append(&block, "\0\1\x05\0", 4);
	put_block(2);
}

static void build(void)
{
	begin_stream();
	put_trace();
	put_thread(3, 77, 78);
	put_block(6);
	put_metadata();
	put_stack_and_labels();
	put_events();
	buf_append_string(&block, "of a later version");
	put_block(200);
	put_u64(&block, 0);
	put_u32(&block, 0);
	put_u32(&block, 1);
	buf_append(&block, "\3\2", 2);
	put_block(4);
	put_block(0);
}

struct seen {
	size_t count;
	struct nettrace_event last;
	char provider[16], name[16];
	uint64_t number, second_address;
	uint32_t level, version;
};

static bool note_event(void *context, const struct nettrace_event *event)
{
	struct seen *seen = context;
	struct nettrace_walk walk;
	struct nettrace_value value = { 0 };

	seen->count++;
	seen->last = *event;
	snprintf(seen->provider, sizeof(seen->provider), "%s", event->provider);
	snprintf(seen->name, sizeof(seen->name), "%s", event->kind->name);
	seen->level = event->kind->level;
	seen->version = event->version;
	if (event->stack_count == 2)
		memcpy(&seen->second_address, event->stack + 8, 8);
	nettrace_walk_begin(&walk, &event->kind->fields, event->payload, event->payload_bytes, 8);
	if (seen->count == 1 && nettrace_walk_next(&walk, &value))
		seen->number = value.number;
	return true;
}

static struct sym_error *parse(size_t size_bytes, struct seen *seen)
{
	struct nettrace_sink sink = { .context = seen, .event = note_event };
	void *copy = malloc(size_bytes ? size_bytes : 1);
	struct sym_error *error;

	memcpy(copy, stream.data, size_bytes);
	error = nettrace_parse(copy, size_bytes, &sink);
	free(copy);
	return error;
}

Test(nettrace_v6, gives_kind_thread_stack_activity_and_fields, .init = build, .fini = deinit)
{
	struct seen seen = { 0 };

	cr_assert(parse(stream.size_bytes, &seen) == NULL);
	cr_assert_eq(seen.count, 2);
	cr_expect_str_eq(seen.provider, "Contoso");
	cr_expect_str_eq(seen.name, "Placed");
	cr_expect_eq(seen.last.event_id, 9);
	cr_expect_eq(seen.level, 4);
	cr_expect_eq(seen.version, 2);
	cr_expect_eq(seen.last.pid, 77);
	cr_expect_eq(seen.last.thread_id, 78);
	cr_expect_eq(seen.last.time, 11);
	cr_expect_eq(seen.second_address, 0x2000);
	cr_expect(seen.last.activity != NULL);
	cr_expect_eq(seen.number, 300);
}

Test(nettrace_v6, gives_the_same_from_pieces, .init = build, .fini = deinit)
{
	struct seen seen = { 0 };
	struct nettrace_sink sink = { .context = &seen, .event = note_event };
	struct nettrace_stream *pieces;
	size_t done = 0, used;

	cr_assert(nettrace_stream_create(&sink, &pieces) == NULL);
	for (size_t arrived = 1; arrived <= stream.size_bytes; arrived++) {
		cr_assert(nettrace_stream_feed(pieces, stream.data + done, arrived - done, &used) ==
			  NULL);
		done += used;
	}
	cr_expect(nettrace_stream_ended(pieces));
	cr_expect_eq(nettrace_stream_gaps(pieces), 0);
	cr_expect_eq(nettrace_stream_trace(pieces)->pid, 4711);
	cr_expect_eq(nettrace_stream_trace(pieces)->sync_utc_ms, 1795867200250);
	nettrace_stream_destroy(pieces);
	cr_expect_eq(seen.count, 2);
}

Test(nettrace_v6, rejects_a_stream_truncated_anywhere, .init = build, .fini = deinit)
{
	for (size_t size = 0; size < stream.size_bytes; size++) {
		struct seen seen = { 0 };
		struct sym_error *error = parse(size, &seen);

		cr_assert(error != NULL, "%zu bytes were accepted", size);
		sym_error_destroy(error);
	}
}

Test(nettrace_v6, survives_any_wrong_bit, .init = build, .fini = deinit)
{
	for (size_t i = 0; i < stream.size_bytes * 8; i++) {
		struct seen seen = { 0 };

		stream.data[i / 8] ^= (char)(1 << i % 8);
		sym_error_destroy(parse(stream.size_bytes, &seen));
		stream.data[i / 8] ^= (char)(1 << i % 8);
	}
}
