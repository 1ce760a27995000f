/* SPDX-License-Identifier: MIT */
/*
 * /proc/kallsyms, from kernel/kallsyms.c (Linux 2.6 to 6.18): one symbol per line,
 *
 *   ADDRESS TYPE NAME[\t[MODULE]]
 *
 * ADDRESS is hexadecimal; it is zero if the reader may not see addresses. TYPE is one letter, as in
 * nm. The kernel writes this text, but a recorded tree can contain anything.
 */
#ifndef LIBSYM_FORMAT_LINUX_KALLSYMS_H
#define LIBSYM_FORMAT_LINUX_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kallsyms_line {
	uint64_t address;
	const char *name; /* points into the text, not NUL terminated */
	size_t name_bytes;
	const char *module; /* without brackets; NULL: the kernel itself */
	size_t module_bytes;
	char type;
};

struct kallsyms_parser {
	const char *next; /* first byte not consumed */
	const char *end;
	uint64_t bad_lines;
};

/* The next good line. Stops before a last line without its newline. */
bool kallsyms_parser_next(struct kallsyms_parser *parser, struct kallsyms_line *ret);

/* Is it code, by type and name? Returns false for data, for section marks, and for assembler
 * labels. */
bool kallsyms_is_function(const struct kallsyms_line *line);

#endif
