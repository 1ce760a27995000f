/* SPDX-License-Identifier: MIT */
/*
 * Reads a stream of stack text and writes the same text with names. Splits the stream into lines,
 * passes the frames of stack_text.h in batches to its client, and writes every byte unchanged,
 * except where a frame has got a name. Knows neither files nor processes; the two functions of the
 * client do.
 */
#ifndef MAPGEN_STACKTEXT_STACK_FILTER_H
#define MAPGEN_STACKTEXT_STACK_FILTER_H

#include "mapgen/stacktext/stack_text.h"

/* A place to look up. */
struct stack_query {
	uint64_t value;
	const char *image; /* see stack_frame.image_start; not terminated; NULL: an address */
	size_t image_bytes;
	bool is_return;   /* look up the instruction before it */
	bool is_unwound;  /* see stack_frame.is_unwound */
	bool follows;     /* the query before it is on the line before */
	bool behind_head; /* see stack_frame.behind_head */
	bool is_named;    /* only the line is wanted */
	uint64_t time_ns; /* see stack_text.time_ns */
};

/* A place in the source. */
struct source_place {
	const char *file;    /* NULL: unknown */
	uint32_t line;       /* 0: unknown */
	bool is_approximate; /* the line is that of an instruction before */
};

/* A function that is inlined into another one. */
struct stack_inlined {
	const char *name; /* "": unknown */
	struct source_place place;
};

/* A name, borrowed until the next batch. */
struct stack_name {
	const char *name; /* NULL: the text stays unchanged */
	const char *tier; /* NULL: none */
	const char
		*path; /* image of the address; "" for anonymous memory; never NULL beside a name */
	uint64_t offset_bytes; /* of the value, from the start of the function */
	struct source_place place;
	const char *line_reason; /* why managed code has no line; NULL: it has one */
	/* Functions inlined there, innermost first; `place` is where the last one is called. */
	const struct stack_inlined *inlined;
	size_t inlined_count;
};

struct stack_filter_client {
	/* Names `count` frames of one owner; `names` is zeroed. False ends the filter. */
	bool (*resolve)(void *context, struct stack_owner owner, const struct stack_query *queries,
			size_t count, struct stack_name *names);
	/* Announces that frames of this owner will be looked up, among those of others, before more
	 * is read. May be NULL. */
	void (*expect)(void *context, struct stack_owner owner);
	/* Writes bytes of output, in order. False ends the filter. */
	bool (*write)(void *context, const void *bytes, size_t size_bytes);
	void *context;
	int names; /* enum name_form */
	bool strip_tiers;
	bool lines; /* write source lines, also of frames that have a name */
	/* Frames without an owner are named too: they need not wait for one that follows. */
	bool has_default;
};

struct stack_filter;

/* A longer line is passed on unchanged. */
enum {
	STACK_LONGEST_LINE_BYTES = 1 << 20
};

/* NULL: out of memory. */
struct stack_filter *stack_filter_create(const struct stack_filter_client *client);
void stack_filter_destroy(struct stack_filter *filter);

/* Room for the next bytes of the stream, never none; `*size_ret` bytes. */
char *stack_filter_room(struct stack_filter *filter, size_t *size_ret);

/*
 * `size_bytes` bytes were put into the room. Writes every whole line, unless its stack may have an
 * owner that follows. False when the client failed or memory ran out: destroy the filter.
 */
bool stack_filter_push(struct stack_filter *filter, size_t size_bytes);

/* The stream has ended: writes the rest. Another stream may follow. */
bool stack_filter_finish(struct stack_filter *filter);

/* Returns what is missing in everything that was read so far. */
struct stack_missing stack_filter_missing(const struct stack_filter *filter);

/* Number of lines so far that were frames of a stack, with an address. */
uint64_t stack_filter_frames(const struct stack_filter *filter);

#endif
