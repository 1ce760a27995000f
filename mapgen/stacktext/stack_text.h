/* SPDX-License-Identifier: MIT */
/*
 * The text in which tools print stacks: where a line has an address without a name, which process
 * it belongs to, and how the tool would have printed the name. Supports perf script and perf trace,
 * bpftrace, BCC (Python tools, libbpf-tools, folded lines), eu-stack, gdb, lldb, strace,
 * babeltrace2, and lines of addresses. Each line alone decides on its form; earlier lines name the
 * process. Pure: no file, no process, no name. A number is an address only if that is certain.
 */
#ifndef MAPGEN_STACKTEXT_STACK_TEXT_H
#define MAPGEN_STACKTEXT_STACK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The process of addresses, as far as the text names it. */
enum stack_owner_kind {
	STACK_OWNER_NONE = 0, /* unknown */
	STACK_OWNER_PROCESS,
	STACK_OWNER_THREAD, /* the process of this thread */
};

struct stack_owner {
	enum stack_owner_kind kind;
	int32_t id;
};

/* How a name is written at its place. */
enum stack_form {
	STACK_FORM_HEX,       /* NAME+0x1f, as perf does */
	STACK_FORM_DECIMAL,   /* NAME+31, as bpftrace does */
	STACK_FORM_SPACED,    /* NAME + 31, as lldb does */
	STACK_FORM_BARE,      /* NAME, as BCC and eu-stack do */
	STACK_FORM_FOLDED,    /* NAME, in which ';' becomes ':' */
	STACK_FORM_QUOTED,    /* "NAME+0x1f" with escapes, as babeltrace2 prints texts */
	STACK_FORM_JSON,      /* NAME+31 inside of a JSON string */
	STACK_FORM_JSON_BARE, /* NAME inside of a JSON string */
};

/* Where the source line of a frame is written. */
enum stack_place {
	STACK_PLACE_NAME = 0, /* NAME@FILE:LINE, as bpftrace does with show_debug_info */
	STACK_PLACE_BELOW,    /* "  FILE:LINE" on a line below, as perf script -F +srcline */
	STACK_PLACE_BELOW_4,  /* "    FILE:LINE" below, as eu-stack -s */
	STACK_PLACE_AT,       /* " at FILE:LINE" at the end of the line, as gdb and lldb */
};

/* An address without a name, or with one where lines are wanted. Offsets are bytes from the start
 * of the line. */
struct stack_frame {
	uint64_t value;
	size_t start; /* [start, end) becomes the name; when empty, the name is inserted there */
	size_t end;
	/* [image_start, image_end): file of which `value` may be an offset, as perf prints it;
	 * empty: `value` is an address. */
	size_t image_start;
	size_t image_end;
	enum stack_form form;
	enum stack_place place;
	bool is_named;     /* the text has the name; only a line is wanted */
	bool blank_before; /* of an inserted name: a blank before it, ... */
	bool blank_after;  /* ... or behind it */
	/* A caller's address: behind its call, possibly behind its function. */
	bool is_return;
	bool is_unwound;  /* not by frame pointers, and printed as found: eu-stack, lldb */
	bool behind_head; /* of a sample without callers, on its line */
	bool has_inlined; /* the text has the functions inlined there on the lines before */
	/* [image_start, image_end) is "[unknown]" and becomes the path; `value` is an address. */
	bool fill_image;
};

/* The meaning of a line for the lines before it. */
enum stack_line {
	STACK_LINE_OTHER,
	STACK_LINE_FRAME,     /* of a stack whose owner may follow */
	STACK_LINE_OWNER,     /* ends such a stack and names its process: stack_text.behind */
	STACK_LINE_SOURCE,    /* source line of the frame on the line before it */
	STACK_LINE_NO_SOURCE, /* what perf prints in place of such a line: "  program[1b2]" */
};

/* Frames "[unknown]" that cannot get a name. */
struct stack_missing {
	uint64_t addresses; /* they have no address */
	uint64_t files; /* their number may be an offset into a file that the text does not name */
};

typedef void stack_frame_handler(void *context, const struct stack_frame *frame);

struct stack_text {
	struct stack_owner owner;     /* of the frames of this line, and of the next */
	struct stack_owner behind;    /* of the stack before a STACK_LINE_OWNER */
	uint64_t time_ns;             /* time of the frames, by the clock of the text; 0: unknown */
	struct stack_missing missing; /* of all lines so far */
	stack_frame_handler *handler;
	void *context;
	bool wants_named;   /* report frames with a name too: their lines are wanted */
	bool ends_in_blank; /* this line as far as it was read, before the rest was dropped */
	size_t width_bytes; /* of this line without it */
	/* State between lines. */
	bool has_tab;  /* the line before, except for source_line() */
	bool in_stack; /* the line before was a user frame with an address, so this one is a caller
			*/
	bool in_map_key;       /* inside of bpftrace's "@[" */
	bool in_perf_trace;    /* a head of perf trace was seen */
	bool behind_signal;    /* gdb, lldb: the next frame was interrupted */
	bool marks_calls;      /* eu-stack -a: callers of this stack are marked */
	bool plain_names;      /* perf script prints names without offsets */
	uint64_t inlined_at;   /* perf script: address of "NAME (inlined)" on the line before; 0 */
	int32_t traced_thread; /* strace: thread of the last call; 0: unknown */
	uint8_t trace_column;  /* column of the PID in the rows of BCC's trace, from 1; 0: no trace
				*/
};

void stack_text_init(struct stack_text *text, stack_frame_handler *handler, void *context);

/*
 * Reads a line, without its newline, and calls the handler for each frame in it that needs a name,
 * from left to right, without overlaps.
 */
enum stack_line stack_text_line(struct stack_text *text, const char *line, size_t size_bytes);

#endif
