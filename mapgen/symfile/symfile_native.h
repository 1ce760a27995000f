/* SPDX-License-Identifier: MIT */
/*
 * The symbol file of a native ELF file: its own bytes with a symbol table, under a build-id of
 * ours. Code, unwind tables and headers stay, so that call chains of `perf record --call-graph
 * dwarf` are unwound and code is annotated as from the file itself.
 */
#ifndef MAPGEN_SYMFILE_SYMFILE_NATIVE_H
#define MAPGEN_SYMFILE_SYMFILE_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "mapgen/symfile/symfile.h"

/*
 * Writes the ELF file behind `fd` (read with pread()) to `ret` (empty, with a maximum). What lies
 * behind everything that its headers name, such as a bundle, is left out: it begins at *end_ret.
 * Values of the symbols in `elf` are vaddrs; a symbol that ends with a call also gets the byte
 * behind it. The same symbols and file give the same bytes. `replaces`: the symbols replace a
 * symbol table of the file.
 *
 * NULL on success, else why not, a static text. The file must be little-endian ELF64 with section
 * headers, and have no symbol table unless it is replaced. A build-id of another length, or none,
 * is fine.
 */
const char *symfile_native_finish(const struct symfile *elf, int fd, bool replaces, struct buf *ret,
				  uint8_t id_ret[SYMFILE_ID_BYTES], uint64_t *end_ret);

#endif
