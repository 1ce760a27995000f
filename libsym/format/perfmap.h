/* SPDX-License-Identifier: MIT */
/*
 * Perf maps (perf-PID.map): the one reader and the one writer.
 *
 *   START SIZE NAME
 *
 * Read: START and SIZE hexadecimal in either case, an optional 0x on each,
 * any zero padding; NAME to the end of the line with its spaces, any bytes;
 * CRLF; empty lines (neither good nor bad); a bad line is counted and skipped.
 * Runtimes write as many bytes as a name has characters, so a name that is not
 * ASCII loses its end with the newline, and the next line is glued on (3.1, 8.0 and
 * 10.0, tried). 3.1: "... [MinOptJi00007F5E60C30150 8 stub<364> ..."; 8.0 and 10.0
 * damage the front as well: 16 bytes of garbage stand in place of the address, or
 * the first half of the line as UTF-16, so that only what is glued on can be saved.
 * Behind a byte that is not ASCII or is 0, a new line begins with "0x" and 6 to 16
 * lower-case digits, or with 16 digits of which the first are 0000, where a size
 * as the runtime writes it and a name follow. Names of ASCII are never cut.
 *
 * A last line without its newline is not a line yet: perfmap_parser_next()
 * stops before it, and `next` tells where to go on when the file has grown.
 *
 * Written: lower-case hex, no prefix, one space each, control characters of
 * the name replaced by '?', a newline behind every line.
 */
#ifndef LIBSYM_FORMAT_PERFMAP_H
#define LIBSYM_FORMAT_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libsym/base/buf.h"

struct perfmap_line {
	uint64_t start_address;
	uint64_t size_bytes;
	const char *name; /* into the text; not NUL terminated; cut at a NUL byte */
	size_t name_bytes;
	size_t bare_bytes; /* of the name without its tier, as perfmap_find_tier() has it */
	unsigned int tier; /* its number */
};

/* Runtimes from 8 on write "stub ", earlier ones "stub<N> ". */
static inline bool perfmap_is_stub(const char *name, size_t name_bytes)
{
	return name_bytes > 5 && !memcmp(name, "stub", 4) && (name[4] == ' ' || name[4] == '<');
}

struct perfmap_parser {
	const char *next; /* first byte not consumed */
	const char *end;
	const char *newline; /* behind `next`, where it is known; else NULL */
	uint64_t good_lines;
	uint64_t bad_lines;
	uint64_t glued_lines; /* lines that had to be cut in two */
};

void perfmap_parser_init(struct perfmap_parser *parser, const char *text, size_t size_bytes);

/* The next line; false behind the last. Where many are to be read, perfmap_usual.h takes most of
 * them faster, up to each that is not usual and with which this goes on, while `newline` is NULL.
 */
bool perfmap_parser_next(struct perfmap_parser *parser, struct perfmap_line *ret);

/* Appends one line; `tier` may be NULL. */
void perfmap_write_line(struct buf *buf, uint64_t start_address, uint64_t size_bytes,
			const char *name, size_t name_bytes, const char *tier);

#endif
