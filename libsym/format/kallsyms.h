/* SPDX-License-Identifier: MIT */
/*
 * /proc/kallsyms, from kernel/kallsyms.c (Linux 2.6 to 6.18): one symbol a line,
 *
 *   ADDRESS TYPE NAME[\t[MODULE]]
 *
 * ADDRESS is hexadecimal, zero where addresses are hidden from the reader; TYPE
 * is one letter as nm has it. Text in, lines out. The kernel writes it, but a
 * recorded tree is anybody's.
 */
#ifndef LIBSYM_FORMAT_KALLSYMS_H
#define LIBSYM_FORMAT_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kallsyms_line {
	uint64_t address;
	const char *name; /* into the text, not NUL terminated */
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

/* The next good line; stops before a last line without its newline. */
bool kallsyms_parser_next(struct kallsyms_parser *parser, struct kallsyms_line *ret);

/*
 * Code, by its type and name: false for data, for marks that only say where a
 * section begins or ends, and for labels of assemblers.
 */
bool kallsyms_is_function(const struct kallsyms_line *line);

#endif
