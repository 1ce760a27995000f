/* SPDX-License-Identifier: MIT */
/* The state of a nettrace stream, which nettrace.c, nettrace_events.c and nettrace_v6.c share. */
#ifndef LIBSYM_FORMAT_NETTRACE_NETTRACE_STREAM_H
#define LIBSYM_FORMAT_NETTRACE_NETTRACE_STREAM_H

#include "libsym/format/nettrace/nettrace.h"
#include "libsym/format/nettrace/nettrace_kinds.h"
#include "libsym/format/nettrace/nettrace_labels.h"
#include "libsym/format/nettrace/nettrace_stacks.h"
#include "libsym/format/nettrace/nettrace_threads.h"

struct nettrace_stream {
	struct reader reader;
	uint64_t base; /* offset in the stream of the reader's first byte */
	struct nettrace_sink sink;
	struct nettrace_kinds kinds;
	struct nettrace_threads threads;
	struct nettrace_stacks stacks;
	struct nettrace_labels labels; /* version 6 */
	struct nettrace_trace trace;
	uint64_t unknown_kinds, missing_stacks;
	bool is_v6;
	bool has_trace;
	bool has_head;
	bool ended; /* the end mark was read */
	bool stopped;
	bool no_memory;
};

/* Reads the events of an EventBlock, or the kinds of a MetadataBlock of version 4. */
void nettrace_read_events(struct nettrace_stream *stream, struct reader block, bool is_metadata);

/* Reads one block of version 6, all of whose bytes are there. */
void nettrace_read_v6(struct nettrace_stream *stream);
/* Are all bytes of the next block there? */
bool nettrace_is_v6_whole(const struct nettrace_stream *stream);

#endif
