/* SPDX-License-Identifier: MIT */
/*
 * Sections of DWARF that are packed with Zstandard (ELFCOMPRESS_ZSTD), unpacked before libdw sees
 * them: elfutils before 0.189 knows zlib only. Of each file only the sections that tell functions
 * and lines.
 */
#ifndef LIBSYM_DWARF_UNPACK_H
#define LIBSYM_DWARF_UNPACK_H

#include <libelf.h>
#include <stddef.h>

#include "libsym/base/cleanup.h"
#include "libsym/error.h"

enum {
	DWARF_UNPACK_MOST = 16
};

/* The bytes that an Elf uses then; zero is none. */
struct dwarf_unpacked {
	void *parts[DWARF_UNPACK_MOST];
	size_t count;
	size_t size_bytes; /* of all */
};

/*
 * To be called before anything has been read of the sections. One that is damaged, or promises more
 * than LIMIT_DEBUG_SECTION_BYTES with those before it, is left as it is: libdw passes it over, or
 * dwarf_info_open() hides it from libdw.
 * Errors: NO_MEMORY.
 */
struct sym_error *dwarf_unpack(Elf *elf, struct dwarf_unpacked *ret)
	__attribute__((warn_unused_result));

/* After elf_end(). */
void dwarf_unpacked_deinit(struct dwarf_unpacked *unpacked);

#endif
