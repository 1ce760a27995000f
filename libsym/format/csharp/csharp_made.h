/* SPDX-License-Identifier: MIT */
/*
 * Names that the C# compiler makes (Roslyn, GeneratedNames.cs and GeneratedNameKind.cs):
 *
 *   <M>d__3, <M>d        type: state machine of the async method or iterator M
 *   <>c, <>c__1          type: closures without variables
 *   <>c__DisplayClass7_0 type: closures with variables
 *   <F>F0A1B2__T         type T that is local to the file F
 *   <M>b__7_1            method: lambda in M
 *   <M>g__L|7_3          method: local function L in M
 *   <Main>$              method: the top-level statements
 *   <Main>               method: what calls an async Main
 *   <>m__Finally1        method of an iterator: a finally block
 *   <Clone>$             method of a record: copies it, for a with expression
 *   <G>$0A1B             type: an extension block of C# 14, whose members are in the type around it
 *
 * M can itself be such a name: <<M>b__8_0>d is the state machine of an async lambda.
 */
#ifndef LIBSYM_FORMAT_CSHARP_CSHARP_MADE_H
#define LIBSYM_FORMAT_CSHARP_CSHARP_MADE_H

#include "libsym/format/dotnet/method_name.h"

enum csharp_made_kind {
	CSHARP_NOT_MADE, /* or of a kind that is not known */
	CSHARP_STATE_MACHINE,
	CSHARP_CLOSURE,
	CSHARP_FILE_LOCAL,
	CSHARP_LAMBDA,
	CSHARP_LOCAL,
	CSHARP_TOP_LEVEL,
	CSHARP_ENTRY_POINT,
	CSHARP_FINALLY,
	CSHARP_CLONE,
	CSHARP_EXTENSION,
};

struct csharp_made {
	enum csharp_made_kind kind;
	struct text_span of;   /* M; T of a file-local type */
	struct text_span name; /* L of a local function */
};

/* Reads the name of a type (without arity) or of a method. */
struct csharp_made csharp_made_of(struct text_span name);

#endif
