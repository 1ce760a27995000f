/* SPDX-License-Identifier: MIT */
/*
 * Perf maps (perf-PID.map): the only reader and the only writer.
 *
 *   START SIZE NAME
 *
 * Reading accepts: START and SIZE hexadecimal in either case, an optional 0x, zero padding; NAME up
 * to the end of the line with its spaces and any bytes; CRLF; empty lines (neither good nor bad). A
 * bad line is counted and skipped.
 *
 * Runtimes write as many bytes as a name has characters. So a name with non-ASCII characters loses
 * its end and the newline, and the next line is joined to it (observed with 3.1, 8.0
 * and 10.0). 3.1:
 * "... [MinOptJi00007F5E60C30150 8 stub<364> ...". 8.0 and 10.0 damage the front as well: instead
 * of the address there are 16 bytes of garbage, or the first half of the line as UTF-16. Only the
 * joined line can then be recovered. After a non-ASCII or NUL byte, a new line starts with "0x" and
 * 6 to 16 lower-case digits, or with 16 digits that begin with 0000; a size in the runtime's form
 * and a name must follow. ASCII names are never cut.
 *
 * A last line without its newline is incomplete: perfmap_parser_next() stops before it, and `next`
 * is where to continue when the file has grown.
 *
 * Writing: lower-case hex, no prefix, one space each, control characters of the name replaced by
 * '?', a newline after every line.
 */
#ifndef LIBSYM_FORMAT_PERF_PERFMAP_H
#define LIBSYM_FORMAT_PERF_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "libsym/base/buf.h"

struct perfmap_line {
	uint64_t start_address;
	uint64_t size_bytes;
	const char *name; /* points into the text; not NUL terminated; ends at a NUL byte */
	size_t name_bytes;
	size_t bare_bytes; /* length without the tier, as in perfmap_tier_find() */
	unsigned int tier; /* number of the tier */
};

/* Runtimes since 8 write "stub ", earlier ones "stub<N> ". */
static inline bool perfmap_is_stub(const char *name, size_t name_bytes)
{
	return name_bytes > 5 && !memcmp(name, "stub", 4) && (name[4] == ' ' || name[4] == '<');
}

struct perfmap_parser {
	const char *next; /* first byte not consumed */
	const char *end;
	const char *newline; /* the newline after `next` if known, else NULL */
	uint64_t good_lines;
	uint64_t bad_lines;
	uint64_t joined_lines; /* lines that were split */
};

void perfmap_parser_init(struct perfmap_parser *parser, const char *text, size_t size_bytes);

/* The next line; false at the end. */
bool perfmap_parser_next(struct perfmap_parser *parser, struct perfmap_line *ret);

/* Appends one line; `tier` may be NULL. */
void perfmap_write_line(struct buf *buf, uint64_t start_address, uint64_t size_bytes,
			const char *name, size_t name_bytes, const char *tier);

#endif
