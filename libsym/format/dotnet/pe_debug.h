/* SPDX-License-Identifier: MIT */
/*
 * Which PDB a PE file names, by its debug directory.
 *
 *   entry of 28 bytes: u32 0, stamp, u16 major, minor version, u32 type, size, rva, offset
 *   type 2    "RSDS", GUID, u32 age, path with NUL; minor version 0x504d: a portable PDB
 *   type 17   "MPDB", u32 size, raw deflate: the PDB itself
 *   type 19   name of an algorithm with NUL, checksum of the PDB
 * dotnet/runtime docs/design/specs/PE-COFF.md.
 */
#ifndef LIBSYM_FORMAT_DOTNET_PE_DEBUG_H
#define LIBSYM_FORMAT_DOTNET_PE_DEBUG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/format/dotnet/pe.h"

struct pe_debug {
	bool has_pdb;
	bool is_portable;
	uint8_t guid[16]; /* as Guid.ToByteArray() */
	uint32_t age;
	uint32_t stamp;        /* portable: the last four bytes of the PDB's id */
	const char *path;      /* points into the data; "" when it has no end */
	const uint8_t *packed; /* the embedded PDB; NULL: none */
	size_t packed_bytes;
	uint32_t unpacked_bytes;
	const char *algorithm; /* NULL: no checksum */
	const uint8_t *checksum;
	size_t checksum_bytes;
};

/* An entry that is malformed counts as missing. A portable PDB wins over another one. */
void pe_debug_read(const struct pe *pe, struct pe_debug *ret);

#endif
