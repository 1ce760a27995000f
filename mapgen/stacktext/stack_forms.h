/* SPDX-License-Identifier: MIT */
/*
 * The readers of the single forms of text behind stack_text.h. Each gets the line and the rest of
 * it, and returns whether the line has its form.
 */
#ifndef MAPGEN_STACKTEXT_STACK_FORMS_H
#define MAPGEN_STACKTEXT_STACK_FORMS_H

#include "mapgen/stacktext/stack_scan.h"
#include "mapgen/stacktext/stack_text.h"

/* ---- a frame that was found: stack_frame.c ---- */

/* Reports a frame, unless it is in the kernel. */
void stack_report(struct stack_text *text, const struct stack_frame *frame);

/* Reports a number as a frame whose name replaces it, unless it is in the kernel. */
void stack_report_number(struct stack_text *text, const char *line,
			 const struct stack_number *number, enum stack_form form, bool is_return);

/* "(/file)" at the end of a line, without its parentheses. False: there is none. */
bool stack_read_image(struct stack_span rest, const char *line, struct stack_frame *frame);

/* "\t7fa5228db04b 0x7fa5228db04b ([unknown])"; `rest` is behind the first number. False: the line
 * is something else. */
bool stack_bpftrace_perf_frame(struct stack_text *text, const char *line,
			       const struct stack_number *number, struct stack_span rest,
			       enum stack_form form);

/* The first "NUMBER [unknown]" of a span; `*behind_ret`: behind it. False: there is none. */
bool stack_unknown_inside(struct stack_span rest, struct stack_number *ret,
			  struct stack_span *behind_ret);

/* ---- lines of several frames: stack_list.c ---- */

/* "comm;main;0x7f... 12". */
bool stack_folded_line(struct stack_text *text, const char *line, struct stack_span rest);

/* "@[0x7f...]: 12", a key of a bpftrace map, or the start of one with several lines. */
void stack_map_key_line(struct stack_text *text, const char *line, struct stack_span rest);

/* The parts of such a key beside its stacks: ", 1234, comm]: 1" and "]: 1" end it, ", " separates
 * two. */
void stack_map_key_rest(struct stack_text *text, const char *line, struct stack_span rest);

/* The single addresses in a part of a key. */
void stack_key_addresses(struct stack_text *text, const char *line, struct stack_span key,
			 enum stack_form form);

/* "{ ip = 0x7F..., callstack_user = [ [0] = 0x7F..., ... ] }" of babeltrace2. */
bool stack_trace_event_line(struct stack_text *text, const char *line, struct stack_span rest);

/* "0x7f... 0x7f...": only addresses. */
bool stack_address_list(struct stack_text *text, const char *line, struct stack_span rest);

/* ---- bpftrace -f json: stack_json.c ---- */

bool stack_json_line(struct stack_text *text, const char *line, struct stack_span rest);

/* ---- strace -k: stack_strace.c ---- */

/* A line that may be a system call, not indented: its thread. */
void stack_strace_call(struct stack_text *text, struct stack_span rest);

/* " > /file() [0x1af]", with a name before the parentheses or without. */
bool stack_strace_frame(struct stack_text *text, const char *line, struct stack_span rest);

/* ---- lines that say whose what follows is: stack_head.c ---- */

/* "comm 1/2 [000] 12.345678: ..." of perf script. `*behind_ret`: behind the time; without a time,
 * the sample without callers that may stand there. */
bool stack_perf_head(struct stack_text *text, struct stack_span rest,
		     struct stack_span *behind_ret);

/* "0.042 ( 0.040 ms): comm/2 futex(...) = 0" of perf trace, which prints no ids when there is one
 * thread; "0.042 comm/2 sched:sched_switch(...)". */
bool stack_perf_trace_head(struct stack_text *text, struct stack_span rest);

/* "PID 1 - process" of eu-stack; "Thread 2 (Thread 0x7f... (LWP 1) ...):" of gdb. */
bool stack_debugger_head(struct stack_text *text, struct stack_span rest);

/* Heading and rows of BCC's trace. */
bool stack_trace_row(struct stack_text *text, struct stack_span rest);

/* "    -   comm (1)" and "    b'comm' [1]", behind a stack of BCC. */
bool stack_bcc_tail(struct stack_text *text, const char *line, struct stack_span rest);

#endif
