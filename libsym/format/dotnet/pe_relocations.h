/* SPDX-License-Identifier: MIT */
/*
 * Base relocations of a PE32+ file: the positions of pointers that the loader adjusts.
 * PE/COFF specification, "The .reloc Section".
 *
 *   optional header: ImageBase (u64) at 24, data directory 5 at 112 + 5 * 8
 *   blocks: u32 page rva, u32 block size with this header, u16 entries[]:
 *           type << 12 | offset into the page; type 10 (DIR64) is a 64-bit pointer
 */
#ifndef LIBSYM_FORMAT_DOTNET_PE_RELOCATIONS_H
#define LIBSYM_FORMAT_DOTNET_PE_RELOCATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/base/reader.h"

struct pe_relocation_table {
	uint64_t preferred_base; /* ImageBase */
	uint32_t rva;
	uint32_t size_bytes;
};

/* Reads the first bytes of a PE file. Returns false if it is not a PE32+ file or has no
 * relocations. */
bool pe_relocations_locate(const void *head, size_t size_bytes, struct pe_relocation_table *ret);

struct pe_relocation_block {
	uint32_t page_rva;
	struct reader entries;
};

/* The next block of a table. Returns false at the end or if the table is malformed. */
bool pe_relocations_next_block(struct reader *table, struct pe_relocation_block *ret);

/* Offset into the page of the block's next 64-bit pointer. Returns false at the end. */
bool pe_relocations_next_pointer(struct pe_relocation_block *block, uint32_t *offset_ret);

#endif
