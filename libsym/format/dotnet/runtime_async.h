/* SPDX-License-Identifier: MIT */
/*
 * Variants of runtime-async methods, which await without a state machine. A method that returns a
 * task then has two bodies under one MethodDef row: the one that returns the task, named as the row
 * is, and the variant that does the work or awaits it. The variant was observed to return
 *
 *   .NET 10: int32 modreq(Task`1), where the row has class Task`1<int32>: a modifier in its place
 *   .NET 11: int32, the task's value
 *
 * This reader distinguishes the variants in the text of a rundown, and makes the signature of .NET
 * 10's variant. clr/method_desc.c finds the variant in a live runtime.
 */
#ifndef LIBSYM_FORMAT_DOTNET_RUNTIME_ASYNC_H
#define LIBSYM_FORMAT_DOTNET_RUNTIME_ASYNC_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/base/buf.h"
#include "libsym/format/dotnet/metadata.h"

/* The return type in a signature text of a rundown. */
struct runtime_async_text {
	bool is_known;
	bool is_modified; /* has a task as a modifier */
	/* The enclosing tasks from outside in, two bits each: 1 Task, 2 ValueTask. */
	uint16_t tasks;
};

/* Parses "instance generic class System.Threading.Tasks.Task`1<int32>  (!!0)" and the like. */
struct runtime_async_text runtime_async_read_text(const char *signature);

enum runtime_async_form {
	RUNTIME_ASYNC_NONE,     /* as in the row */
	RUNTIME_ASYNC_MODIFIED, /* .NET 10's variant */
	RUNTIME_ASYNC_VALUE,    /* .NET 11's variant */
	RUNTIME_ASYNC_UNCLEAR,  /* neither */
};

/* Which body of the row with this signature does the text describe? */
enum runtime_async_form runtime_async_form_of(const struct runtime_async_text *text,
					      const struct metadata *metadata,
					      struct metadata_blob row);

/* Appends the signature of .NET 10's variant of the row. Returns false if it has none, its
 * signature is malformed, or there is no room. */
bool runtime_async_modify(struct metadata_blob row, struct buf *out);

#endif
