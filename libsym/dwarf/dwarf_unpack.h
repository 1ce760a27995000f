/* SPDX-License-Identifier: MIT */
/* Decompresses DWARF sections that use Zstandard (ELFCOMPRESS_ZSTD) before libdw sees them:
 * elfutils before 0.189 supports only zlib. Only the sections for functions and lines. */
#ifndef LIBSYM_DWARF_DWARF_UNPACK_H
#define LIBSYM_DWARF_DWARF_UNPACK_H

#include <libelf.h>
#include <stddef.h>

#include "libsym/base/cleanup.h"
#include "libsym/dwarf/dwarf_files.h"
#include "libsym/error.h"

enum {
	DWARF_UNPACK_MOST = 16
};

/* The decompressed sections, which an Elf uses. A zeroed struct is empty. */
struct dwarf_unpacked {
	void *parts[DWARF_UNPACK_MOST];
	size_t count;
	size_t size_bytes; /* total */
};

/*
 * Call before any section is read. A section stays unchanged if it is damaged, or if it would
 * exceed LIMIT_DEBUG_SECTION_BYTES (in total) or `charge`. libdw then ignores it, or
 * dwarf_info_open() hides it. Errors: NO_MEMORY.
 */
struct sym_error *dwarf_unpack(Elf *elf, struct dwarf_charge *charge, struct dwarf_unpacked *ret)
	__attribute__((warn_unused_result));

/* Call after elf_end(). */
void dwarf_unpacked_deinit(struct dwarf_unpacked *unpacked);

#endif
