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
 * The signature is the MD5 of the MVIDs of what was compiled, sorted by simple name, and of os,
 * architecture and abi as u32: it names inputs, not code.
 * (dotnet/runtime docs/design/coreclr/botr/r2r-perfmap-format.md)
 */
#ifndef LIBSYM_FORMAT_RELMAP_H
#define LIBSYM_FORMAT_RELMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/buf.h"

enum relmap_os {
	RELMAP_OS_UNKNOWN,
	RELMAP_OS_WINDOWS,
	RELMAP_OS_LINUX,
	RELMAP_OS_OSX,
	RELMAP_OS_FREEBSD,
	RELMAP_OS_NETBSD,
	RELMAP_OS_SUNOS,
};

enum relmap_architecture {
	RELMAP_ARCHITECTURE_UNKNOWN,
	RELMAP_ARCHITECTURE_ARM,
	RELMAP_ARCHITECTURE_ARM64,
	RELMAP_ARCHITECTURE_X64,
	RELMAP_ARCHITECTURE_X86,
	RELMAP_ARCHITECTURE_RISCV64,
	RELMAP_ARCHITECTURE_LOONGARCH64,
};

enum relmap_abi {
	RELMAP_ABI_UNKNOWN,
	RELMAP_ABI_DEFAULT,
	RELMAP_ABI_ARMEL,
};

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
	/* enum relmap_os, relmap_architecture, relmap_abi; 0 when absent */
	uint32_t os, architecture, abi;
};

struct relmap_parser {
	const char *next;
	const char *end;
	const char *newline;         /* behind `next`, where it is known; else NULL */
	struct relmap_header header; /* complete once there is no further row */
	uint64_t good_rows, bad_rows, glued_rows;
};

void relmap_parser_init(struct relmap_parser *parser, const char *text, size_t size_bytes);

/* The next symbol row; header rows are taken into parser->header. A last row without newline
 * counts. */
bool relmap_parser_next(struct relmap_parser *parser, struct relmap_row *ret);

/* Appends "%08x %x NAME\n"; the name must not contain control characters (they become '?'). */
void relmap_write_row(struct buf *buf, uint32_t rva, uint32_t size_bytes, const char *name,
		      size_t name_bytes);

/*
 * The same as crossgen2 writes them: "%08X %02X NAME\n", and the five header rows, which its
 * readers expect first and in this order. The version of the format is 1 whatever `header` says.
 */
void relmap_write_crossgen2_header(struct buf *buf, const struct relmap_header *header);
void relmap_write_crossgen2_row(struct buf *buf, uint32_t rva, uint32_t size_bytes,
				const char *name, size_t name_bytes);

#endif
