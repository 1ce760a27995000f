/* SPDX-License-Identifier: MIT */
/*
 * Types as C# writes them, from the texts that runtimes and crossgen2 write:
 *
 *   class [A]N.G`1<int32[]>       a signature of the runtime    N.G<int[]>
 *   N.Outer`1+Inner[System.Int32] a type of the runtime         N.Outer<int>.Inner
 *   N.G`1[System.Int32, N.C]      crossgen2                     N.G<int, N.C>
 *
 * A type that does not fit makes the whole name fail; the caller then leaves the name as it was.
 */
#ifndef LIBSYM_FORMAT_CSHARP_CSHARP_TYPE_H
#define LIBSYM_FORMAT_CSHARP_CSHARP_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/format/dotnet/method_name.h"

/* The values are those of enum sym_csharp_flags. */
enum csharp_flags {
	CSHARP_NO_NAMESPACES = 1 << 0,
	CSHARP_NO_TYPE_ARGUMENTS = 1 << 1,
	CSHARP_NO_PARAMETERS = 1 << 2,
	CSHARP_IS_MANAGED = 1 << 3,
};

/* Writes to a room like snprintf(), and fails beyond its limits. */
struct csharp_writer {
	char *room;
	size_t room_bytes;
	size_t length; /* of all that was written, in the room or beyond it */
	size_t longest;
	uint32_t flags;
	unsigned int depth;         /* that is left for nested types */
	unsigned int substitutions; /* that are left */
	struct text_span arguments; /* what !0, !1 stand for; empty when not known */
	bool failed;
};

struct csharp_writer csharp_writer_over(char *room, size_t room_bytes, uint32_t flags,
					size_t name_bytes);
void csharp_write(struct csharp_writer *writer, const char *text, size_t size_bytes);
void csharp_write_word(struct csharp_writer *writer, const char *text);
void csharp_write_char(struct csharp_writer *writer, char byte);

/* An identifier, without the backslashes of the runtime. */
void csharp_write_identifier(struct csharp_writer *writer, struct text_span text);

/* One type. */
void csharp_write_type(struct csharp_writer *writer, struct text_span text);
/* Types with commas between them. */
void csharp_write_types(struct csharp_writer *writer, struct text_span list);

/* Where the list item at `start` ends: at the next comma that is in no bracket, or at `end`. */
const char *csharp_item_end(const char *start, const char *end);
unsigned int csharp_count_items(struct text_span list);

/* The parts of a class name: "N.Outer`1" and "Inner", and the arguments of all of them. */
struct csharp_class {
	struct text_span names;     /* parts with '+' or '/' between them */
	struct text_span arguments; /* without brackets */
};

struct csharp_class csharp_class_split(struct text_span text);
/* Takes the first part off `names`. */
struct text_span csharp_next_part(struct text_span *names);
/* The number behind the backtick of a part; 0 without. *name_end_ret: where its name ends. */
unsigned int csharp_arity(struct text_span part, const char **name_end_ret);
/* Writes "<A, B>" from the first `count` arguments, and takes them off the list. */
void csharp_write_arguments(struct csharp_writer *writer, struct text_span *arguments,
			    unsigned int count);
/* Writes one part: its name without namespace and arity, where that is wanted. */
void csharp_write_part(struct csharp_writer *writer, struct text_span part);

#endif
