/* SPDX-License-Identifier: MIT */
/*
 * perfinfo-PID.map: the images that a .NET runtime has loaded, one per line. Runtimes up to .NET 8
 * write it beside their perf map (coreclr src/vm/perfinfo.cpp).
 *
 *   up to 2.2   ImageLoad;PATH;{GUID};
 *   3.0 to 8    ImageLoad;PATH;{GUID};BASE;
 *
 * GUID is the module version id. BASE is the address of rva 0: sixteen hex digits in 3.x, with 0x
 * since 8. It is zero, or the text "(nil)", for an image without precompiled code. PATH is not
 * escaped and can contain anything, so a line is parsed from its end.
 */
#ifndef LIBSYM_FORMAT_DOTNET_PERFINFO_H
#define LIBSYM_FORMAT_DOTNET_PERFINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PERFINFO_MVID_CHARACTERS = 36
};

struct perfinfo_line {
	const char *path; /* into the text, not NUL terminated */
	size_t path_bytes;
	char mvid[PERFINFO_MVID_CHARACTERS + 1]; /* lower case, with dashes */
	bool has_base;                           /* false: absent, zero or "(nil)" */
	uint64_t base_address;
};

struct perfinfo_parser {
	const char *next;
	const char *end;
	uint64_t good_lines, bad_lines;
};

void perfinfo_parser_init(struct perfinfo_parser *parser, const char *text, size_t size_bytes);

/* The next well-formed line; false at the end. A malformed line is counted and skipped. A last line
 * without a newline is incomplete and left out. */
bool perfinfo_parser_next(struct perfinfo_parser *parser, struct perfinfo_line *ret);

#endif
