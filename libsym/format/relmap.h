/* SPDX-License-Identifier: MIT */
/*
 * Relative maps: the symbols of one image by rva, in the three forms that exist.
 *
 *   crossgen v1, NAME.ni.{MVID}.map    "%08x %x NAME", any order; up to 2.2 "%016X %x NAME".
 *                                      Names that are not ASCII lose their newline, and the next
 *                                      row is glued on: cut at such digits behind a byte that is
 *                                      not ASCII; names of ASCII are never cut
 *   crossgen2, same name (format 0)    "%08X %02X NAME" sorted; header rows from FFFFFFFB up
 *   crossgen2, NAME.ni.r2rmap (1)      the same bytes as format 0
 *
 * Header rows (rva >= 0xFFFFFFFB) are never symbols:
 *   FFFFFFFF signature, FFFFFFFE format version, FFFFFFFD os, FFFFFFFC architecture, FFFFFFFB abi.
 */
#ifndef LIBSYM_FORMAT_RELMAP_H
#define LIBSYM_FORMAT_RELMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

struct relmap_row {
	uint32_t rva;
	uint32_t size_bytes;
	const char *name; /* into the text, not NUL terminated */
	size_t name_bytes;
};

struct relmap_header {
	bool has_signature;
	uint8_t signature[16];
	bool has_version;
	uint32_t version;
	uint32_t os, architecture, abi; /* 0 when absent */
};

struct relmap_parser {
	const char *next;
	const char *end;
	const char *newline;         /* behind `next`, where it is known; else NULL */
	struct relmap_header header; /* complete once the first symbol row was returned */
	uint64_t good_rows, bad_rows, glued_rows;
};

void relmap_parser_init(struct relmap_parser *parser, const char *text, size_t size_bytes);

/* The next symbol row; header rows are taken into parser->header. A last row without newline
 * counts. */
bool relmap_parser_next(struct relmap_parser *parser, struct relmap_row *ret);

/* Appends "%08x %x NAME\n"; the name must not contain control characters (they become '?'). */
void relmap_write_row(struct buf *buf, uint32_t rva, uint32_t size_bytes, const char *name,
		      size_t name_bytes);

/* "NAME.ni.{mvid}.map" for an assembly; `mvid` as 36 characters. */
bool relmap_file_name(struct buf *buf, const char *assembly_name, const char *mvid);

#endif
