/* SPDX-License-Identifier: MIT */
/* Makes small nettrace streams by the specification: event kinds, events with compressed or plain
 * headers, blocks, the end. */
#ifndef TESTS_SUPPORT_NETTRACE_BUILDER_H
#define TESTS_SUPPORT_NETTRACE_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

struct nettrace_builder {
	struct buf stream;
	struct buf block; /* of the current block: event blobs */
	bool compressed;  /* form of the current block */
	/* The thread of the last event, and its number within that thread. Set it before an event
	 * of another thread, or to leave out events. */
	uint64_t thread;
	uint32_t event_number;
	uint32_t header_number; /* base of the next compressed header */
	uint64_t time;          /* of the last event */
	uint64_t header_time;   /* base of the next compressed header */
};

/* Starts a stream: head and Trace object. */
void nettrace_builder_init(struct nettrace_builder *builder);
void nettrace_builder_deinit(struct nettrace_builder *builder);

void begin_block(struct nettrace_builder *builder, bool compressed);
/* Ends the block as "EventBlock", "MetadataBlock", or anything else. */
void end_block(struct nettrace_builder *builder, const char *type);
void end_stream(struct nettrace_builder *builder);

/* Adds to the current block. Kinds belong to no thread. */
void put_kind(struct nettrace_builder *builder, uint32_t number, const char *provider,
	      uint32_t event_id, uint32_t version);
void put_event(struct nettrace_builder *builder, uint32_t number, const void *payload,
	       size_t size_bytes);

/* A sequence point: `count` pairs of a thread and the number of its last event. */
void put_point(struct nettrace_builder *builder, const uint64_t (*threads)[2], uint32_t count);

/* Parts of payloads. Texts are ASCII. */
void put_u16(struct buf *buf, uint16_t value);
void put_u32(struct buf *buf, uint32_t value);
void put_u64(struct buf *buf, uint64_t value);
void put_utf16(struct buf *buf, const char *text);

#endif
