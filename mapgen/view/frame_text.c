/* SPDX-License-Identifier: MIT */
#include "mapgen/view/frame_text.h"

#include <stdlib.h>
#include <string.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/path.h"
#include "libsym/base/utf8.h"
#include "libsym/libsym.h"
#include "mapgen/cli/source_file.h"
#include "mapgen/view/type_text.h"

/* Where the parameters of a C++ function begin; its end when it has none. Parentheses in type
 * arguments, in "(anonymous namespace)" and in "operator()" begin none. */
static const char *find_parameters(const char *name)
{
	static const char operator[] = "operator", anonymous[] = "(anonymous namespace)";
	const char *c = name;
	int depth = 0;

	while (*c && (*c != '(' || depth || c == name)) {
		if (!strncmp(c, operator, sizeof(operator) - 1)) {
			c += sizeof(operator) - 1;
			c += !strncmp(c, "()", 2) ? 2 : strcspn(c, "(");
			continue;
		}
		if (!strncmp(c, anonymous, sizeof(anonymous) - 1)) {
			c += sizeof(anonymous) - 1;
			continue;
		}
		depth += *c == '<';
		depth -= *c == '>' && depth;
		c++;
		if (!depth && !strncmp(c, anonymous, sizeof(anonymous) - 1))
			c += sizeof(anonymous) - 1;
	}
	return c;
}

static void append_native(struct buf *text, const char *name)
{
	buf_append(text, name, (size_t)(find_parameters(name) - name));
}

static void append_unnamed(struct buf *text, const struct profile_frame *frame)
{
	buf_append_string(text, frame->name);
	if (*frame->image && !strcmp(frame->name, FRAME_NAME_UNKNOWN)) {
		buf_append_string(text, " in ");
		buf_append_string(text, path_file_name(frame->image));
	}
}

static void append_managed(struct buf *text, const char *name, uint32_t flags)
{
	size_t count = sym_name_csharp(name, flags, NULL, 0);
	char *room AUTO_FREE = malloc(count + 1);

	if (!room) {
		text->failure = BUF_NO_MEMORY;
		return;
	}
	sym_name_csharp(name, flags, room, count + 1);
	buf_append(text, room, count);
}

static void append_csharp(struct buf *text, const struct profile_frame *frame, uint32_t flags)
{
	if (!frame->is_named)
		append_unnamed(text, frame);
	else if (frame->kind == FRAME_KIND_EVENT)
		type_text_short(text, frame->name);
	else if (frame_kind_is_managed(frame->kind))
		append_managed(text, frame->name,
			       flags | SYM_CSHARP_NO_NAMESPACES | SYM_CSHARP_IS_MANAGED);
	else
		append_native(text, frame->name);
}

void frame_text_short(struct buf *text, const struct profile_frame *frame)
{
	append_csharp(text, frame, SYM_CSHARP_NO_TYPE_ARGUMENTS | SYM_CSHARP_NO_PARAMETERS);
}

void frame_text_append(struct buf *text, const struct profile_frame *frame, enum frame_names names)
{
	if (names == FRAME_NAMES_FULL && frame->is_named)
		buf_append_string(text, frame->name);
	else if (names == FRAME_NAMES_SHORT)
		frame_text_short(text, frame);
	else
		append_csharp(text, frame, 0);
}

void frame_text_fit(struct buf *text, const struct profile_frame *frame, enum frame_names names,
		    size_t width)
{
	size_t start = text->size_bytes;
	const char *whole;

	frame_text_append(text, frame, names);
	whole = buf_string(text);
	if (names != FRAME_NAMES_CSHARP || !whole || utf8_count(whole + start) <= width)
		return;
	buf_truncate(text, start);
	frame_text_short(text, frame);
}

void frame_text_place(struct buf *text, const struct profile_frame *frame)
{
	if (!frame->line)
		return;
	buf_printf(text, "%s:%s%u", source_file_name(frame->file),
		   frame->quality == SYM_LINE_NEAREST ? "~" : "", frame->line);
}

const char *frame_text_kind(const struct profile_frame *frame)
{
	/* src/coreclr/vm/eventtrace.cpp, MethodOptimizationTierNames in perfmap.cpp */
	static const char *const tiers[][2] = {
		{ "OptimizedTier1", "tier 1" },
		{ "QuickJitted", "tier 0" },
		{ "MinOptJitted", "not optimized" },
		{ "Optimized", "optimized" },
		{ "OptimizedTier1OSR", "tier 1 (OSR)" },
		{ "InstrumentedTier", "tier 0 (instrumented)" },
		{ "InstrumentedTierOptimized", "tier 1 (instrumented)" },
		{ "PreJIT", "precompiled" },
	};

	if (frame->is_inlined)
		return "inlined";
	if (frame->kind == FRAME_KIND_JITTED)
		for (size_t i = 0; i < sizeof(tiers) / sizeof(*tiers); i++)
			if (!strcmp(frame->tier, tiers[i][0]))
				return tiers[i][1];
	return frame_kind_text(frame->kind);
}

/* Code that the runtime makes to call a method. */
static const char stub_mark[] = "::IL_STUB";

bool frame_text_is_framework(const struct profile_frame *frame)
{
	static const char *const beginnings[] = { "System.", "Microsoft.", "Internal.", "Interop" };
	char room[32];
	size_t i = 0;

	if (!frame_kind_is_managed(frame->kind) || strstr(frame->name, stub_mark))
		return true;
	sym_name_shorten(frame->name, room, sizeof(room));
	for (; i < sizeof(beginnings) / sizeof(*beginnings); i++)
		if (!strncmp(room, beginnings[i], strlen(beginnings[i])))
			return true;
	return false;
}

/* Functions in which everything waits say nothing of where. */
static bool is_primitive(const struct profile_frame *frame)
{
	static const char *const types[] = { "Threading.WaitHandle::",
					     "Threading.Monitor::",
					     "Threading.Thread::",
					     "EventSlim::",
					     "SemaphoreSlim::",
					     "Threading.LowLevel",
					     "Threading.Lock::",
					     "Threading.WaitSubsystem",
					     "SafeHandle" };

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (strstr(frame->name, types[i]))
			return true;
	return false;
}

bool frame_text_says_where(const struct profile_frame *frame)
{
	return frame_kind_is_managed(frame->kind) && !is_primitive(frame) &&
	       !strstr(frame->name, stub_mark);
}
