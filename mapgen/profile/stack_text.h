/* SPDX-License-Identifier: MIT */
/*
 * The text in which tools print stacks: where in a line an address stands that
 * has no name, whose it is, and how that tool would have written the name.
 * Known are perf script and perf trace, bpftrace, BCC (its Python tools, libbpf-tools, folded
 * lines), eu-stack, gdb, lldb, strace, babeltrace2 and lines that are addresses. The form is
 * told from each line alone, with what the lines before it said of the process.
 * Pure: no file, no process, no name. What is not certainly an address is none.
 */
#ifndef MAPGEN_PROFILE_STACK_TEXT_H
#define MAPGEN_PROFILE_STACK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whose addresses they are, as far as the text says. */
enum stack_owner_kind {
	STACK_OWNER_NONE = 0, /* it does not */
	STACK_OWNER_PROCESS,
	STACK_OWNER_THREAD, /* the process that has this thread */
};

struct stack_owner {
	enum stack_owner_kind kind;
	int32_t id;
};

/* How a name is written into its place. */
enum stack_form {
	STACK_FORM_HEX,       /* NAME+0x1f, as perf does */
	STACK_FORM_DECIMAL,   /* NAME+31, as bpftrace does */
	STACK_FORM_SPACED,    /* NAME + 31, as lldb does */
	STACK_FORM_BARE,      /* NAME, as BCC and eu-stack do */
	STACK_FORM_FOLDED,    /* NAME, in which ';' becomes ':' */
	STACK_FORM_QUOTED,    /* "NAME+0x1f" with escapes, as babeltrace2 prints texts */
	STACK_FORM_JSON,      /* NAME+31 inside of a JSON string */
	STACK_FORM_JSON_BARE, /* NAME there */
};

/* An address without a name. Offsets are bytes from the start of the line. */
struct stack_frame {
	uint64_t value;
	size_t start; /* [start, end) becomes the name; an empty one is a place to put it in */
	size_t end;
	/* [module_start, module_end): file of which `value` may be an offset, as perf prints it;
	 * empty: `value` is an address. */
	size_t module_start;
	size_t module_end;
	enum stack_form form;
	bool blank_before; /* of a name that is put in: a blank goes before it, ... */
	bool blank_after;  /* ... or behind it */
	/* A caller's: behind its call, which may be behind its method too. */
	bool is_return;
	bool is_unwound;  /* not by frame pointers, and told as it was found: eu-stack, lldb */
	bool behind_head; /* of a sample without callers: on its line */
	/* [module_start, module_end) is "[unknown]" and becomes the path; `value` is an address. */
	bool fill_module;
};

/* What a line means to the lines before it. */
enum stack_line {
	STACK_LINE_OTHER,
	STACK_LINE_FRAME, /* of a stack whose owner may come behind it */
	STACK_LINE_OWNER, /* ends such a stack and says whose it is: stack_text.behind */
};

/* Frames "[unknown]" that nothing can be done for. */
struct stack_missing {
	uint64_t addresses; /* they have no address */
	uint64_t files;     /* their number may be an offset into a file that is not told */
};

typedef void stack_frame_handler(void *context, const struct stack_frame *frame);

struct stack_text {
	struct stack_owner owner;  /* of the frames of this line, and of the next */
	struct stack_owner behind; /* of the stack before a STACK_LINE_OWNER */
	uint64_t time_ns;          /* when they were seen, by the clock of the text; 0: not said */
	struct stack_missing missing; /* so far */
	stack_frame_handler *handler;
	void *context;
	bool ends_in_blank; /* this line, before that was cut off */
	size_t width_bytes; /* of this line without it */
	/* Between lines. */
	bool has_tab;    /* the line before, but for source_line() */
	bool in_stack;   /* the line before was a user frame with an address: this one is a caller's
			  */
	bool in_map_key; /* inside of bpftrace's "@[" */
	bool in_perf_trace;    /* there was a head of perf trace */
	bool behind_signal;    /* gdb, lldb: what comes was interrupted */
	bool marks_calls;      /* eu-stack -a: callers of this stack are told from such */
	bool plain_names;      /* perf script prints names without offsets */
	int32_t traced_thread; /* strace: of the last call; 0: not said */
	uint8_t trace_column;  /* where BCC's trace has the PID in its rows, from 1; 0: no trace */
};

void stack_text_init(struct stack_text *text, stack_frame_handler *handler, void *context);

/*
 * Reads a line, without its newline, and calls the handler for each frame in it
 * that wants a name, from left to right, without overlaps.
 */
enum stack_line stack_text_line(struct stack_text *text, const char *line, size_t size_bytes);

#endif
