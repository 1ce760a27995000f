/* SPDX-License-Identifier: MIT */
#include "libsym/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/limits.h"

/* As c++filt, perf and gdb show names. */
static const int style = DMGL_PARAMS | DMGL_ANSI;

struct output {
	struct buf *buf;
	size_t end_bytes; /* size of `buf` that is too much */
	jmp_buf too_long;
};

/* libiberty cannot be told to stop; in this form it holds nothing that a jump would lose, but for
 * the small buffer of one Punycode identifier. */
static void take(const char *text, size_t bytes, void *context)
{
	struct output *output = context;

	if (bytes >= output->end_bytes - output->buf->size_bytes ||
	    !buf_append(output->buf, text, bytes))
		longjmp(output->too_long, 1);
}

/* Rust comes first: its older names are C++ names of a certain form. */
static bool print(const char *name, struct output *output)
{
	size_t start_bytes = output->buf->size_bytes;

	if (setjmp(output->too_long))
		return false;
	if (rust_demangle_callback(name, style, take, output))
		return true;
	buf_truncate(output->buf, start_bytes);
	return cplus_demangle_v3_callback(name, style, take, output);
}

/*
 * May a name of D be long when all is written that it refers back to? It is written anew at each
 * reference (Q), and what refers to the same thing n times makes n of it: 3 references, three times
 * as much, is the worst. Of 37,574 names of Phobos (GDC 12, LDC 1.30) 356 may be longer.
 */
static bool may_be_long(const char *name)
{
	const uint64_t most_bytes = 4 << 20;
	uint64_t bytes = strlen(name);

	for (; (name = strchr(name, 'Q')) && bytes <= most_bytes; name++)
		bytes += bytes * 4 / 9; /* more than the third root of 3 */
	return bytes > most_bytes;
}

/* Only in one piece, by code that takes what memory it needs. */
static bool print_d(const char *name, struct buf *ret)
{
	enum {
		LONGEST_D_NAME = 4096
	};
	char *text AUTO_FREE = NULL;

	if (name[1] != 'D' || strnlen(name, LONGEST_D_NAME) == LONGEST_D_NAME || may_be_long(name))
		return false;
	text = dlang_demangle(name, style);
	return text && *text && strlen(text) < LIMIT_NAME_BYTES && buf_append_string(ret, text);
}

/*
 * ocamlopt (tried with 4.13): "caml", then path and name with "__" between them, and "$xx" for a
 * character that assemblers do not take. The number that tells functions of one name apart stays.
 * All as perf shows it.
 */
static bool print_ocaml(const char *name, struct buf *ret)
{
	const char *at = name + 4;

	if (!strstr(at, "__") || strnlen(at, LIMIT_NAME_BYTES) == LIMIT_NAME_BYTES)
		return false;
	while (*at) {
		uint64_t code;

		if (at[0] == '_' && at[1] == '_' && at[2]) {
			buf_append(ret, ".", 1);
			at += 2;
		} else if (at[0] == '$' && hex_read_u64(at + 1, 2, &code) == 2 && code > ' ' &&
			   code < 0x7f) {
			buf_append(ret, &(char){ (char)code }, 1);
			at += 3;
		} else {
			buf_append(ret, at++, 1);
		}
	}
	return ret->failure == BUF_OK;
}

bool demangle(const char *name, struct buf *ret)
{
	struct output output = { .buf = ret, .end_bytes = ret->size_bytes + LIMIT_NAME_BYTES };
	size_t start_bytes = ret->size_bytes;

	if (!demangle_is_candidate(name) || ret->failure != BUF_OK)
		return false;
	if (name[0] == 'c') {
		if (print_ocaml(name, ret))
			return true;
		buf_truncate(ret, start_bytes);
		return false;
	}
	if (print(name, &output) && ret->size_bytes > start_bytes)
		return true;
	buf_truncate(ret, start_bytes);
	return print_d(name, ret);
}
