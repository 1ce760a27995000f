/* SPDX-License-Identifier: MIT */
/*
 * Relative maps: the symbols of one image by rva, in the three forms that exist.
 *
 *   crossgen v1, NAME.ni.{MVID}.map    "%08x %x NAME", any order; up to 2.2 "%016X %x NAME".
 *                                      Names with non-ASCII characters lose their newline, and
 *                                      the next row is joined on. Such a name is cut where these
 *                                      digits follow a non-ASCII byte; ASCII names are never cut
 *   crossgen2, same name (format 0)    "%08X %02X NAME" sorted; header rows from FFFFFFFB up
 *   crossgen2, NAME.ni.r2rmap (1)      the same bytes as format 0
 *
 * Header rows (rva >= 0xFFFFFFFB) are never symbols:
 *   FFFFFFFF signature, FFFFFFFE format version, FFFFFFFD os, FFFFFFFC architecture, FFFFFFFB abi.
 * The signature is an MD5 over the MVIDs of the compiled assemblies, sorted by simple name, and
 * over os, architecture and abi as u32. It identifies inputs, not code. (dotnet/runtime
 * docs/design/coreclr/botr/r2r-perfmap-format.md)
 */
#ifndef LIBSYM_FORMAT_DOTNET_RELMAP_H
#define LIBSYM_FORMAT_DOTNET_RELMAP_H

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
	const char *name; /* points into the text, not NUL terminated */
	size_t name_bytes;
};

struct relmap_header {
	bool has_signature;
	uint8_t signature[16];
	bool has_version;
	uint32_t version;
	/* enum relmap_os, relmap_architecture, relmap_abi; 0 if absent */
	uint32_t os, architecture, abi;
};

struct relmap_parser {
	const char *next;
	const char *end;
	const char *newline;         /* the newline after `next` if known, else NULL */
	struct relmap_header header; /* complete once all rows were read */
	uint64_t good_rows, bad_rows, joined_rows;
};

void relmap_parser_init(struct relmap_parser *parser, const char *text, size_t size_bytes);

/* The next symbol row. Header rows go to parser->header. A last row without a newline counts. */
bool relmap_parser_next(struct relmap_parser *parser, struct relmap_row *ret);

/* Appends "%08x %x NAME\n". Control characters in the name become '?'. */
void relmap_write_row(struct buf *buf, uint32_t rva, uint32_t size_bytes, const char *name,
		      size_t name_bytes);

/* Write crossgen2's form: "%08X %02X NAME\n", and the five header rows, which readers expect first
 * and in this order. The format version is always written as 1. */
void relmap_write_crossgen2_header(struct buf *buf, const struct relmap_header *header);
void relmap_write_crossgen2_row(struct buf *buf, uint32_t rva, uint32_t size_bytes,
				const char *name, size_t name_bytes);

#endif
