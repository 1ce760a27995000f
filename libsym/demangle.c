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

/* Of a name of D, what is written when everything up to a byte is. */
struct d_bounds {
	const char *name;
	size_t size_bytes;
	size_t reach;   /* where the furthest of the identifiers so far ends */
	uint64_t *most; /* one a byte, and one for the end: of what is before it */
};

/* "16Identifier": where it ends; `at` where no number is. */
static size_t identifier_end(const struct d_bounds *bounds, size_t at)
{
	size_t length = 0, digit = at;

	for (; bounds->name[digit] >= '0' && bounds->name[digit] <= '9'; digit++)
		if (length <= bounds->size_bytes)
			length = 10 * length + (size_t)(bounds->name[digit] - '0');
	return length < bounds->size_bytes - digit ? digit + length : bounds->size_bytes;
}

/* "Qab" at `at`: what it refers to begins so many bytes before it; 0: it is none. */
static size_t reference_distance(const struct d_bounds *bounds, size_t at)
{
	const char *digit = bounds->name + at + 1;
	size_t distance = 0;

	for (; *digit >= 'A' && *digit <= 'Z' && distance <= at; digit++)
		distance = 26 * distance + (size_t)(*digit - 'A');
	if (*digit < 'a' || *digit > 'z')
		return 0;
	distance = 26 * distance + (size_t)(*digit - 'a');
	return distance <= at ? distance : 0;
}

/*
 * What a reference may write. Of an identifier it is the identifier, of a type what stands before
 * the reference at most, as that cannot be part of itself; but for an identifier in it that
 * reaches further.
 */
static uint64_t reference_bound(const struct d_bounds *bounds, size_t at)
{
	size_t distance = reference_distance(bounds, at), from = at - distance, end = at;

	if (!distance)
		return 0;
	if (bounds->name[from] >= '0' && bounds->name[from] <= '9')
		end = identifier_end(bounds, from);
	return bounds->most[end < at ? end : at] - bounds->most[from] +
	       (bounds->reach > at ? bounds->reach - at : 0);
}

/*
 * May a name of D be long when all is written that it refers back to? It is written anew at each
 * reference (Q), and what refers to the same thing n times makes n of it. A byte is written as 13
 * at most ("n" is typeof(null)). Of 18,227 names of Phobos and two programs (GDC 12, LDC 1.30) 39
 * may be.
 */
static bool may_be_long(const char *name)
{
	const uint64_t most_bytes = 1 << 20;
	struct d_bounds bounds = { .name = name, .size_bytes = strlen(name) };
	uint64_t *most AUTO_FREE = calloc(bounds.size_bytes + 1, sizeof(*most));

	if (!most)
		return true;
	bounds.most = most;
	for (size_t at = 0; at < bounds.size_bytes && most[at] <= most_bytes; at++) {
		bool is_digit = name[at] >= '0' && name[at] <= '9';
		size_t end = is_digit ? identifier_end(&bounds, at) : 0;

		if (end > bounds.reach)
			bounds.reach = end;
		most[at + 1] = most[at] + 1 + (name[at] == 'Q' ? reference_bound(&bounds, at) : 0);
		most[bounds.size_bytes] = most[at + 1];
	}
	return most[bounds.size_bytes] > most_bytes;
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
