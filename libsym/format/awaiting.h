/* SPDX-License-Identifier: MIT */
/*
 * Variants of methods that await without a state machine (runtime-async). Where they are, a method
 * that returns a task has two bodies under one row of MethodDef: what callers get their task of,
 * which is called as the row says, and the variant that does the work, or awaits who does. What
 * that returns was seen to be
 *
 *   .NET 10: int32 modreq(Task`1), where the row says class Task`1<int32>: a modifier in its place
 *   .NET 11: int32, what is in the task
 *
 * Knows how a rundown tells them apart, and the signature of .NET 10's; where a live runtime keeps
 * it is clr/method_desc's business.
 */
#ifndef LIBSYM_FORMAT_AWAITING_H
#define LIBSYM_FORMAT_AWAITING_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/format/metadata.h"

/* What the text of a signature that a rundown tells says of the type that is returned. */
struct awaiting_text {
	bool is_told;
	bool is_modified; /* by a task */
	/* Of each task that it is in, from outside: 1 Task, 2 ValueTask, two bits each. */
	uint16_t tasks;
};

/* "instance generic class System.Threading.Tasks.Task`1<int32>  (!!0)" and its like. */
struct awaiting_text awaiting_read_text(const char *signature);

enum awaiting_form {
	AWAITING_NOT,      /* as the row says */
	AWAITING_MODIFIED, /* .NET 10's variant */
	AWAITING_VALUE,    /* .NET 11's */
	AWAITING_UNCLEAR,  /* what is told is neither */
};

/* Which body of the row with this signature the text is of. */
enum awaiting_form awaiting_form_of(const struct awaiting_text *text,
				    const struct metadata *metadata, struct metadata_blob row);

/* Appends the signature of .NET 10's variant of the row. False: it has none, its signature is
 * malformed, or there is no room. */
bool awaiting_modify(struct metadata_blob row, struct buf *out);

#endif
