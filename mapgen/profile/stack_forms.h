/* SPDX-License-Identifier: MIT */
/*
 * The readers of single forms of text behind stack_text.h. Each takes the line
 * and what is left of it, and says whether the line is of its form.
 */
#ifndef MAPGEN_PROFILE_STACK_FORMS_H
#define MAPGEN_PROFILE_STACK_FORMS_H

#include "mapgen/profile/stack_scan.h"
#include "mapgen/profile/stack_text.h"

/* ---- lines of several frames: stack_list.c ---- */

/* "comm;main;0x7f... 12". */
bool stack_folded_line(struct stack_text *text, const char *line, struct stack_span rest);

/* "@[0x7f...]: 12", the keys of a bpftrace map, and what opens and closes one that has lines. */
bool stack_map_key_line(struct stack_text *text, const char *line, struct stack_span rest);

/* "{ ip = 0x7F..., callstack_user = [ [0] = 0x7F..., ... ] }" of babeltrace2. */
bool stack_trace_event_line(struct stack_text *text, const char *line, struct stack_span rest);

/* A line of bpftrace -f json. */
bool stack_json_line(struct stack_text *text, const char *line, struct stack_span rest);

/* "0x7f... 0x7f...": nothing but addresses. */
bool stack_address_list(struct stack_text *text, const char *line, struct stack_span rest);

/* ---- lines that say whose what follows is: stack_head.c ---- */

/* "comm 1/2 [000] 12.345678: ..." of perf script. `*behind_ret`: behind the time. */
bool stack_perf_head(struct stack_text *text, struct stack_span rest,
		     struct stack_span *behind_ret);

/* "PID 1 - process" of eu-stack; "Thread 2 (Thread 0x7f... (LWP 1) ...):" of gdb. */
bool stack_debugger_head(struct stack_text *text, struct stack_span rest);

/* Heading and rows of BCC's trace. */
bool stack_trace_row(struct stack_text *text, struct stack_span rest);

/* "    -   comm (1)" and "    b'comm' [1]", behind a stack of BCC. */
bool stack_bcc_tail(struct stack_text *text, const char *line, struct stack_span rest);

#endif
