/* SPDX-License-Identifier: MIT */
/*
 * Makes small nettrace streams, by the specification and by hand: kinds of
 * event, events in compressed or plain headers, blocks, the end.
 */
#ifndef TESTS_SUPPORT_NETTRACE_BUILDER_H
#define TESTS_SUPPORT_NETTRACE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

struct nettrace_builder {
	struct buf stream;
	struct buf block; /* of the block in hand: event blobs */
	bool compressed;  /* form of the block in hand */
	/* Of the last event: the thread that wrote it, and which one of that thread's it was. To be
	 * set before an event of another thread, or one that others are missing before. */
	uint64_t thread;
	uint32_t event_number;
	uint32_t header_number; /* what a compressed header counts from */
	uint64_t time;          /* of the last event */
	uint64_t header_time;   /* as header_number */
};

/* Begins a stream: head and Trace object. */
void nettrace_builder_init(struct nettrace_builder *builder);
void nettrace_builder_deinit(struct nettrace_builder *builder);

void begin_block(struct nettrace_builder *builder, bool compressed);
/* "EventBlock", "MetadataBlock", or anything else. */
void end_block(struct nettrace_builder *builder, const char *type);
void end_stream(struct nettrace_builder *builder);

/* Into the block in hand. Kinds are of no thread. */
void put_kind(struct nettrace_builder *builder, uint32_t number, const char *provider,
	      uint32_t event_id, uint32_t version);
void put_event(struct nettrace_builder *builder, uint32_t number, const void *payload,
	       size_t size_bytes);

/* A sequence point: `count` times a thread and the number of its last event. */
void put_point(struct nettrace_builder *builder, const uint64_t (*threads)[2], uint32_t count);

/* Pieces of payloads. Texts are ASCII. */
void put_u16(struct buf *buf, uint16_t value);
void put_u32(struct buf *buf, uint32_t value);
void put_u64(struct buf *buf, uint64_t value);
void put_utf16(struct buf *buf, const char *text);

#endif
