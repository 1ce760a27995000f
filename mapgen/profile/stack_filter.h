/* SPDX-License-Identifier: MIT */
/*
 * Stack text in, the same text with names out. Cuts a stream into lines, hands
 * the frames of stack_text.h out in batches to be named, and writes what it
 * was given: byte for byte, but where a frame has got a name. Knows neither
 * files nor processes; those are behind the two functions of its client.
 */
#ifndef MAPGEN_PROFILE_STACK_FILTER_H
#define MAPGEN_PROFILE_STACK_FILTER_H

#include "mapgen/profile/stack_text.h"

/* What is to be named. */
struct stack_query {
	uint64_t value;
	const char *module; /* see stack_frame.module_start; not terminated; NULL: an address */
	size_t module_bytes;
	bool is_return;   /* the name of the instruction before it is meant */
	bool is_unwound;  /* see stack_frame.is_unwound */
	bool follows;     /* the query before it is of the line before */
	bool behind_head; /* see stack_frame.behind_head */
	uint64_t time_ns; /* see stack_text.time_ns */
};

/* A name, borrowed until the next batch. */
struct stack_name {
	const char *name; /* NULL: stays as it is */
	const char *tier; /* NULL: none */
	const char
		*path; /* of what it lies in; "" for anonymous memory; never NULL beside a name */
	uint64_t offset_bytes; /* of the value, from the start of what is named */
};

struct stack_filter_client {
	/* Names `count` frames of one owner; `names` comes zeroed. False ends the filter. */
	bool (*resolve)(void *context, struct stack_owner owner, const struct stack_query *queries,
			size_t count, struct stack_name *names);
	/* Takes bytes of output, in order. False ends the filter. */
	bool (*write)(void *context, const void *bytes, size_t size_bytes);
	void *context;
	bool short_names; /* type and method only */
	bool strip_tiers;
	/* Frames of no known owner are named too: they need not wait for what comes behind them. */
	bool has_default;
};

struct stack_filter;

/* A line longer than that is handed on as it is. */
enum {
	STACK_LONGEST_LINE_BYTES = 1 << 20
};

/* NULL: out of memory. */
struct stack_filter *stack_filter_create(const struct stack_filter_client *client);
void stack_filter_destroy(struct stack_filter *filter);

/* Room for the next bytes of the stream, never none; `*size_ret` bytes. */
char *stack_filter_room(struct stack_filter *filter, size_t *size_ret);

/*
 * `size_bytes` bytes have been put into the room. Writes every line that is
 * whole, unless it belongs to a stack whose owner may stand behind it. False
 * when the client or memory failed: the filter is to be destroyed.
 */
bool stack_filter_push(struct stack_filter *filter, size_t size_bytes);

/* The stream has ended: writes what is left. Another one may follow. */
bool stack_filter_finish(struct stack_filter *filter);

/* Of all that has been read. */
struct stack_missing stack_filter_missing(const struct stack_filter *filter);

#endif
