/* SPDX-License-Identifier: MIT */
/*
 * Nettrace, the stream of an EventPipe session: versions 4 and 5, which runtimes write (.NET Core
 * 3.0 to .NET 11), and version 6, which one-collect and dotnet-trace collect-linux write.
 *
 * 4 and 5:
 *   "Nettrace" ; u32 20 ; "!FastSerialization.1" ; objects ; tag 1 = end
 *   object: 05 ; type {05 01 u32 version, u32 least reader, u32 length, name, 06} ; payload ; 06
 *   Trace: 48 bytes. Blocks (EventBlock, MetadataBlock, StackBlock, SPBlock):
 *   u32 size, zeros up to a multiple of 4 in the file, that many bytes.
 * 6:
 *   "Nettrace" ; u32 0 ; u32 6 ; u32 minor ; blocks; a block of kind 0 = end
 *   block: u32 size in bits 0 to 23, kind in bits 24 to 31 ; that many bytes
 *
 * Payloads of events are not decoded here; nettrace_fields.h does that.
 *
 * Specification: microsoft/perfview src/TraceEvent/EventPipe/NetTraceFormat.md (6) and
 * NetTraceFormat_v5.md.
 */
#ifndef LIBSYM_FORMAT_NETTRACE_NETTRACE_H
#define LIBSYM_FORMAT_NETTRACE_NETTRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/base/reader.h"
#include "libsym/error.h"
#include "libsym/format/nettrace/nettrace_fields.h"
#include "libsym/format/nettrace/nettrace_text.h"

/* The head of the stream. */
struct nettrace_trace {
	uint64_t sync_ticks;       /* when the session began */
	uint64_t ticks_per_second; /* the unit of all times */
	uint32_t pointer_bytes;    /* 4 or 8 */
	int32_t pid;               /* in its own PID namespace; 0: not known */
	int64_t sync_utc_ms;       /* since 1970, at sync_ticks */
};

/* A kind of event. It lives as long as the stream. */
struct nettrace_kind {
	char *provider, *name; /* UTF-8; the name is "" for events of the runtime itself */
	uint32_t event_id;
	uint32_t version;
	uint32_t level;
	uint64_t keywords;
	uint8_t opcode;
	bool has_fields; /* the stream describes the fields; else `fields` is empty */
	struct nettrace_fields fields;
	void *owner_data; /* the sink's own; NULL at first */
};

struct nettrace_event {
	struct nettrace_kind *kind;
	const char *provider; /* those of the kind */
	uint32_t event_id;
	uint32_t version;
	uint64_t time; /* ticks of the runtime's clock; ascending only within a thread */
	int32_t pid;
	uint64_t thread_id; /* of the operating system, in the process's PID namespace */
	uint32_t processor;
	/* Addresses, innermost first, pointer_bytes each, not aligned. All but the first are return
	 * addresses. */
	const uint8_t *stack;
	size_t stack_count;
	const uint8_t *activity, *related_activity; /* GUIDs, 16 bytes; NULL: none */
	const uint8_t *payload;
	size_t payload_bytes;
};

struct nettrace_sink {
	void *context;
	/* Returns false to stop parsing without an error. */
	bool (*event)(void *context, const struct nettrace_event *event);
};

/*
 * Passes every event to the sink, in the order of the stream. The memory of an event is valid until
 * the sink returns.
 *
 * Errors: FORMAT (also if the stream ends before its end mark; the events before it were passed
 * on), UNSUPPORTED for another version, LIMIT, NO_MEMORY.
 */
struct sym_error *nettrace_parse(const void *data, size_t size_bytes,
				 const struct nettrace_sink *sink);

/* A stream that arrives in pieces. */
struct nettrace_stream;

struct sym_error *nettrace_stream_create(const struct nettrace_sink *sink,
					 struct nettrace_stream **ret);
void nettrace_stream_destroy(struct nettrace_stream *stream);

/*
 * Passes the events of all complete blocks to the sink. *used_ret bytes of `data` are consumed. The
 * caller passes the rest again, followed by newly arrived bytes. Errors: as nettrace_parse(). After
 * an error the stream cannot be used.
 */
struct sym_error *nettrace_stream_feed(struct nettrace_stream *stream, const void *data,
				       size_t size_bytes, size_t *used_ret);

/* NULL until the head has been read. */
const struct nettrace_trace *nettrace_stream_trace(const struct nettrace_stream *stream);

/* How often so far the runtime dropped one or more events for lack of buffer space. */
uint64_t nettrace_stream_gaps(const struct nettrace_stream *stream);

/* The number of events so far that refer to a kind, or to a stack, that the stream has not
 * described. */
uint64_t nettrace_stream_unknown_kinds(const struct nettrace_stream *stream);
uint64_t nettrace_stream_missing_stacks(const struct nettrace_stream *stream);

/* Was the end mark read? */
bool nettrace_stream_ended(const struct nettrace_stream *stream);

#endif
