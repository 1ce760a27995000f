/* SPDX-License-Identifier: MIT */
/*
 * Short forms of method names.
 *
 * The runtime's dialect (perf map, crossgen v1):
 *   ["explicit "]["instance "][callconv]RET [Assembly] Ns.Outer+Inner`1[Arg]::Method(A,B)
 * crossgen2's dialect:
 *   [RET ]Ns.Type`1[Arg]::Method(A, B)
 */
#ifndef LIBSYM_FORMAT_DOTNET_METHOD_NAME_H
#define LIBSYM_FORMAT_DOTNET_METHOD_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text_span {
	const char *start, *end;
};

/* The parts of "RET [Assembly] Owner::Method(A,B)", as they are in the text. */
struct method_name_parts {
	struct text_span return_type; /* with "instance " and the like; may be empty */
	struct text_span owner, method;
	struct text_span parameters; /* without the parentheses */
};

/* Returns false if the text is not a method name. */
bool method_name_split(const char *name, size_t name_bytes, struct method_name_parts *ret);

/* Size of "[precode] " in front of a name, 0 without. A precode is not the method itself, so short
 * forms keep the mark. */
size_t method_name_mark_bytes(const char *name, size_t name_bytes);

/* Writes "Ns.Type::Method" of a full name to `room` (NUL terminated if room_bytes > 0). Returns its
 * full length, like snprintf(). A text that is not a method name is copied. */
size_t method_name_shorten(const char *name, size_t name_bytes, char *room, size_t room_bytes);

#endif
