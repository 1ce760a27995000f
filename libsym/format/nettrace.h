/* SPDX-License-Identifier: MIT */
/*
 * Nettrace, the stream of an EventPipe session, versions 4 and 5 (.NET Core 3.0
 * to .NET 10): events out, payloads undecoded. Knows blocks, headers and which
 * event is which; not what a payload means.
 *
 *	"Nettrace" ; u32 20 ; "!FastSerialization.1" ; objects ; tag 1 = end
 *	object: 05 ; type {05 01 u32 version, u32 least reader, u32 length, name, 06} ; payload ; 06
 *	Trace: 48 bytes. Blocks (EventBlock, MetadataBlock, StackBlock, SPBlock):
 *	u32 size, zeros up to a multiple of 4 in the file, that many bytes.
 *
 * Spec: microsoft/perfview src/TraceEvent/EventPipe/NetTraceFormat_v5.md.
 */
#ifndef LIBSYM_FORMAT_NETTRACE_H
#define LIBSYM_FORMAT_NETTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/base/reader.h"
#include "libsym/error.h"

struct nettrace_event {
	const char *provider; /* UTF-8 */
	uint32_t event_id;
	uint32_t version;
	uint64_t time; /* ticks of the runtime's clock; a stream is sorted within a thread only */
	const uint8_t *payload;
	size_t payload_bytes;
};

struct nettrace_sink {
	void *context;
	/* false stops the parsing without an error */
	bool (*event)(void *context, const struct nettrace_event *event);
};

/*
 * Hands every event to the sink, in the order of the stream. What an event
 * points to lives until the sink returns.
 *
 * Errors: FORMAT (also for a stream that ends before its end mark: the events
 * before were handed over), UNSUPPORTED for another version, LIMIT, NO_MEMORY.
 */
struct sym_error *nettrace_parse(const void *data, size_t size_bytes,
				 const struct nettrace_sink *sink);

/* A stream that arrives in pieces. */
struct nettrace_stream;

struct sym_error *nettrace_stream_create(const struct nettrace_sink *sink,
					 struct nettrace_stream **ret);
void nettrace_stream_destroy(struct nettrace_stream *stream);

/*
 * Hands the events of all blocks that are whole to the sink. *used_ret bytes of `data` are done
 * with; the others are to come again, followed by what arrived meanwhile. Errors as for
 * nettrace_parse(); after one the stream is of no more use.
 */
struct sym_error *nettrace_stream_feed(struct nettrace_stream *stream, const void *data,
				       size_t size_bytes, size_t *used_ret);

/* Places so far where the runtime had no room for one or more events, so that they are missing. */
uint64_t nettrace_stream_gaps(const struct nettrace_stream *stream);

/* Its end mark was there. */
bool nettrace_stream_ended(const struct nettrace_stream *stream);

/* Reads a UTF-16 string that ends in a NUL and appends it as UTF-8; lone surrogates become U+FFFD.
 */
void nettrace_read_string(struct reader *reader, struct buf *out);

#endif
