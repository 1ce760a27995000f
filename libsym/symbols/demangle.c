/* SPDX-License-Identifier: MIT */
#include "libsym/symbols/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdlib.h>

#include "libsym/base/cleanup.h"
#include "libsym/base/hex.h"
#include "libsym/limits.h"

/* Like c++filt, perf and gdb. */
static const int style = DMGL_PARAMS | DMGL_ANSI;

struct output {
	struct buf *buf;
	size_t end_bytes; /* size at which `buf` is too long */
	jmp_buf too_long;
};

/* longjmp() is the only way to stop libiberty. This interface of it holds no memory that the jump
 * would leak, except the small buffer of one Punycode identifier. */
static void append_demangled(const char *text, size_t bytes, void *context)
{
	struct output *output = context;

	if (bytes >= output->end_bytes - output->buf->size_bytes ||
	    !buf_append(output->buf, text, bytes))
		longjmp(output->too_long, 1);
}

/* Rust comes first: its older names are C++ names in a certain form. */
static bool print_cpp_or_rust(const char *name, struct output *output)
{
	size_t start_bytes = output->buf->size_bytes;

	if (setjmp(output->too_long))
		return false;
	if (rust_demangle_callback(name, style, append_demangled, output))
		return true;
	buf_truncate(output->buf, start_bytes);
	return cplus_demangle_v3_callback(name, style, append_demangled, output);
}

/* Upper bounds for the output of a D name, by input position. */
struct d_bounds {
	const char *name;
	size_t size_bytes;
	size_t reach; /* furthest end of an identifier so far */
	/* bound for the output of all bytes before each position; one more for the end */
	uint64_t *most;
};

/* End of the identifier "16Identifier"; `at` if there is no number. */
static size_t identifier_end(const struct d_bounds *bounds, size_t at)
{
	size_t length = 0, digit = at;

	for (; bounds->name[digit] >= '0' && bounds->name[digit] <= '9'; digit++)
		if (length <= bounds->size_bytes)
			length = 10 * length + (size_t)(bounds->name[digit] - '0');
	return length < bounds->size_bytes - digit ? digit + length : bounds->size_bytes;
}

/* Distance back to the target of the reference "Qab" at `at`; 0 if it is not a reference. */
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
 * Bound for the output of a reference. If it refers to an identifier, it is the identifier. If it
 * refers to a type, the type lies before the reference, because it cannot contain itself. Only an
 * identifier inside the type can reach further.
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
 * Can the output of a D name be long? A reference (Q) writes its target again, so n references to
 * one target multiply the output by n. A byte produces at most 13 ("n" is typeof(null)). 39 of
 * 18,227 names of Phobos and two programs (GDC 12, LDC 1.30) can be long.
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

/* dlang_demangle() returns the whole name at once, in memory of its own. */
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
 * ocamlopt (observed with 4.13): "caml", then path and name separated by "__", and "$xx" for a
 * character that assemblers reject. Functions with equal names keep their number. The result is
 * what perf shows.
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
	if (print_cpp_or_rust(name, &output) && ret->size_bytes > start_bytes)
		return true;
	buf_truncate(ret, start_bytes);
	return print_d(name, ret);
}
