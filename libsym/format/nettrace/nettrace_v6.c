/* SPDX-License-Identifier: MIT */
/*
 * Blocks of version 6: u32 with the size in bits 0 to 23 and the kind in bits 24 to 31. A block of
 * an unknown kind is skipped. After a malformed row the rest of its block is left out; the size of
 * the block says where the next one begins.
 */
#include "libsym/format/nettrace/nettrace_stream.h"
#include "libsym/format/nettrace/nettrace_trace.h"

enum block_kind {
	BLOCK_END = 0,
	BLOCK_TRACE = 1,
	BLOCK_EVENTS = 2,
	BLOCK_METADATA = 3,
	BLOCK_POINT = 4,
	BLOCK_STACKS = 5,
	BLOCK_THREADS = 6,
	BLOCK_REMOVE_THREADS = 7,
	BLOCK_LABELS = 8,
};

enum {
	SIZE_MASK = 0xffffff,
	POINT_FORGETS_THREADS = 1,
	POINT_FORGETS_KINDS = 2,
};

static void read_metadata(struct nettrace_stream *stream, struct reader block)
{
	reader_skip(&block, reader_u16(&block));
	while (reader_left(&block) && !stream->no_memory) {
		uint16_t size_bytes = reader_u16(&block);
		struct reader row = reader_part(&block, block.position, size_bytes);

		if (!reader_ok(&row))
			break;
		stream->no_memory |= !nettrace_kinds_read_v6(&stream->kinds, row);
		reader_skip(&block, size_bytes);
	}
}

static void read_point(struct nettrace_stream *stream, struct reader block)
{
	uint32_t flags;

	reader_skip(&block, 8); /* time */
	flags = reader_u32(&block);
	nettrace_threads_point_v6(&stream->threads, &block, flags & POINT_FORGETS_THREADS);
	if (flags & POINT_FORGETS_KINDS)
		nettrace_kinds_forget(&stream->kinds);
	nettrace_stacks_clear(&stream->stacks);
	stream->labels.count = 0;
}

static void read_block(struct nettrace_stream *stream, enum block_kind kind, struct reader block)
{
	switch (kind) {
	case BLOCK_END:
		stream->ended = true;
		break;
	case BLOCK_TRACE:
		stream->has_trace = nettrace_trace_read_v6(&stream->trace, block);
		if (!stream->has_trace)
			reader_fail(&stream->reader, "malformed head of the trace");
		break;
	case BLOCK_EVENTS:
		nettrace_read_events(stream, block, false);
		break;
	case BLOCK_METADATA:
		read_metadata(stream, block);
		break;
	case BLOCK_POINT:
		read_point(stream, block);
		break;
	case BLOCK_STACKS:
		stream->no_memory |= !nettrace_stacks_read(&stream->stacks, block);
		break;
	case BLOCK_THREADS:
		stream->no_memory |= !nettrace_threads_add_v6(&stream->threads, block);
		break;
	case BLOCK_REMOVE_THREADS:
		nettrace_threads_remove_v6(&stream->threads, block);
		break;
	case BLOCK_LABELS:
		stream->no_memory |= !nettrace_labels_read(&stream->labels, block);
		break;
	default:
		break;
	}
}

void nettrace_read_v6(struct nettrace_stream *stream)
{
	struct reader *reader = &stream->reader;
	uint32_t head = reader_u32(reader);
	size_t size_bytes = head & SIZE_MASK;
	struct reader block = reader_part(reader, reader->position, size_bytes);

	reader_skip(reader, size_bytes);
	if (reader_ok(reader))
		read_block(stream, (enum block_kind)(head >> 24), block);
}

bool nettrace_is_v6_whole(const struct nettrace_stream *stream)
{
	struct reader reader = stream->reader;
	uint32_t head = reader_u32(&reader);

	return reader_ok(&reader) && reader_left(&reader) >= (head & SIZE_MASK);
}
