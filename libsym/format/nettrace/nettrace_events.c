/* SPDX-License-Identifier: MIT */
/*
 * Reads the events of a block. A compressed header has only the fields that differ from those of
 * the event before it in the block:
 *
 *   u8 flags; 01: kind; 02: difference of the number, capturing thread, processor; 04: thread;
 *   08: stack; time since the event before it (modulo 2^64); 10: activity, in version 6 label list;
 *   20: related activity; 80: size of the payload
 */
#include "libsym/format/nettrace/nettrace_stream.h"

#include <string.h>

#include "libsym/base/leb.h"

enum {
	FLAG_KIND = 0x01,
	FLAG_CAPTURE = 0x02,
	FLAG_THREAD = 0x04,
	FLAG_STACK = 0x08,
	FLAG_ACTIVITY = 0x10, /* LABELS in version 6 */
	FLAG_RELATED = 0x20,
	FLAG_PAYLOAD = 0x80,
	GUID_BYTES = 16,
};

struct header {
	uint32_t number; /* number of the event kind */
	uint32_t event_number;
	uint64_t capture_thread; /* the thread that wrote the event; `event_number` is its */
	uint64_t thread;         /* that the event is about */
	uint32_t processor, stack, labels;
	uint64_t time;
	const uint8_t *activity, *related_activity;
	uint32_t payload_bytes;
};

static const uint8_t *read_compressed(struct reader *block, struct header *header, bool is_v6)
{
	uint8_t flags = reader_u8(block);

	if (flags & FLAG_KIND)
		header->number = (uint32_t)leb_unsigned(block);
	if (flags & FLAG_CAPTURE) {
		header->event_number += (uint32_t)leb_unsigned(block);
		header->capture_thread = leb_unsigned(block);
		header->processor = (uint32_t)leb_unsigned(block);
	}
	header->event_number++;
	if (flags & FLAG_THREAD)
		header->thread = leb_unsigned(block);
	if (flags & FLAG_STACK)
		header->stack = (uint32_t)leb_unsigned(block);
	header->time += leb_unsigned(block);
	if (is_v6) {
		if (flags & FLAG_ACTIVITY)
			header->labels = (uint32_t)leb_unsigned(block);
	} else {
		if (flags & FLAG_ACTIVITY)
			header->activity = reader_bytes(block, GUID_BYTES);
		if (flags & FLAG_RELATED)
			header->related_activity = reader_bytes(block, GUID_BYTES);
	}
	if (flags & FLAG_PAYLOAD)
		header->payload_bytes = (uint32_t)leb_unsigned(block);
	return reader_bytes(block, header->payload_bytes);
}

static const uint8_t *read_plain(struct reader *block, struct header *header, bool is_v6)
{
	size_t start = block->position;
	uint32_t size_bytes = reader_u32(block);
	const uint8_t *payload;

	header->number = reader_u32(block);
	header->event_number = reader_u32(block);
	header->thread = reader_u64(block);
	header->capture_thread = reader_u64(block);
	header->processor = reader_u32(block);
	header->stack = reader_u32(block);
	header->time = reader_u64(block);
	if (is_v6) {
		header->labels = reader_u32(block);
	} else {
		header->activity = reader_bytes(block, GUID_BYTES);
		header->related_activity = reader_bytes(block, GUID_BYTES);
	}
	header->payload_bytes = reader_u32(block);
	payload = reader_bytes(block, header->payload_bytes);
	if (reader_ok(block))
		reader_seek(block, start);
	reader_skip(block, 4);
	reader_skip(block, size_bytes);
	while (!is_v6 && reader_left(block) && (block->position - start) % 4)
		reader_skip(block, 1);
	return payload;
}

static const uint8_t *unless_zero(const uint8_t *guid)
{
	static const uint8_t zero[GUID_BYTES];

	return guid && memcmp(guid, zero, GUID_BYTES) != 0 ? guid : NULL;
}

static void find_activities(const struct nettrace_stream *stream, const struct header *header,
			    struct nettrace_event *event)
{
	const struct nettrace_label_list *list;

	event->activity = unless_zero(header->activity);
	event->related_activity = unless_zero(header->related_activity);
	if (!header->labels)
		return;
	list = nettrace_labels_find(&stream->labels, header->labels);
	if (list && list->has_activity)
		event->activity = unless_zero(list->activity);
	if (list && list->has_related)
		event->related_activity = unless_zero(list->related_activity);
}

static void find_stack(struct nettrace_stream *stream, uint32_t number,
		       struct nettrace_event *event)
{
	size_t size_bytes = 0;

	if (!number)
		return;
	event->stack = nettrace_stacks_find(&stream->stacks, number, &size_bytes);
	stream->missing_stacks += !event->stack;
	event->stack_count = size_bytes / stream->trace.pointer_bytes;
}

static void find_thread(const struct nettrace_stream *stream, uint64_t thread,
			struct nettrace_event *event)
{
	event->pid = stream->trace.pid;
	event->thread_id = thread;
	if (stream->is_v6)
		nettrace_threads_identity(&stream->threads, thread, &event->pid, &event->thread_id);
}

static void deliver(struct nettrace_stream *stream, const struct header *header,
		    const uint8_t *payload)
{
	struct nettrace_event event = { .time = header->time,
					.processor = header->processor,
					.payload = payload,
					.payload_bytes = header->payload_bytes };

	/* The top bit means "sorted". */
	event.kind = nettrace_kinds_find(&stream->kinds, header->number & 0x7fffffff);
	if (!event.kind) {
		stream->unknown_kinds++;
		return;
	}
	event.provider = event.kind->provider;
	event.event_id = event.kind->event_id;
	event.version = event.kind->version;
	find_thread(stream, header->thread, &event);
	find_stack(stream, header->stack, &event);
	find_activities(stream, header, &event);
	if (!stream->sink.event(stream->sink.context, &event))
		stream->stopped = true;
}

void nettrace_read_events(struct nettrace_stream *stream, struct reader block, bool is_metadata)
{
	uint16_t header_bytes = reader_u16(&block);
	bool is_compressed = reader_u16(&block) & 1;
	struct header header = { 0 };

	reader_seek(&block, header_bytes);
	while (reader_left(&block) && !stream->stopped && !stream->no_memory) {
		const uint8_t *payload = is_compressed
						 ? read_compressed(&block, &header, stream->is_v6)
						 : read_plain(&block, &header, stream->is_v6);

		if (!payload || !reader_ok(&block))
			break;
		if (is_metadata) {
			stream->no_memory |= !nettrace_kinds_read_v4(
				&stream->kinds, reader_over(payload, header.payload_bytes));
			continue;
		}
		stream->no_memory |= !nettrace_threads_event(
			&stream->threads, header.capture_thread, header.event_number);
		deliver(stream, &header, payload);
	}
	if (!reader_ok(&block))
		reader_fail(&stream->reader, "malformed block");
}
