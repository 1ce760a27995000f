/* SPDX-License-Identifier: MIT */
/*
 * A frame as a person reads it: "Store.TopByTag(string)" for
 * "int32 [Store.Core] Contoso.Store::TopByTag(string)", as C# code names it (sym_name_csharp()).
 */
#ifndef MAPGEN_VIEW_FRAME_TEXT_H
#define MAPGEN_VIEW_FRAME_TEXT_H

#include "libsym/base/buf.h"
#include "mapgen/profile/frame_table.h"

/* The values are those of --names of the commands that show frames. */
enum frame_names {
	FRAME_NAMES_CSHARP = 0, /* without namespaces */
	FRAME_NAMES_SHORT,      /* and without type arguments and parameters */
	FRAME_NAMES_FULL,       /* whole signatures, as the runtime writes them */
};

/* Appends the name of a frame; an unnamed frame has its image with it. */
void frame_text_append(struct buf *text, const struct profile_frame *frame, enum frame_names names);

/* Appends the name, in the short form where the one as in C# is longer than `width`. */
void frame_text_fit(struct buf *text, const struct profile_frame *frame, enum frame_names names,
		    size_t width);

/* The short form. */
void frame_text_short(struct buf *text, const struct profile_frame *frame);

/* Appends "Store.cs:88", with "~" before the line when the line is approximate; nothing without a
 * line.
 */
void frame_text_place(struct buf *text, const struct profile_frame *frame);

/* "tier 1", "precompiled", "kernel", "inlined", ...; static, or the tier itself. */
const char *frame_text_kind(const struct profile_frame *frame);

/* Is it code that comes with .NET? */
bool frame_text_is_framework(const struct profile_frame *frame);

/* Is it a managed function that shows where a thread is? Not Monitor.Wait and the like, in which
 * every thread waits, and no stub of the runtime. */
bool frame_text_says_where(const struct profile_frame *frame);

#endif
