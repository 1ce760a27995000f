/* SPDX-License-Identifier: MIT */
/*
 * The stand-in of a native ELF file: its own bytes with a symbol table, under a build-id of ours.
 * Code, unwind tables and headers stay what they are, so that call chains of `perf record
 * --call-graph dwarf` are unwound and code is annotated from it as from the file.
 */
#ifndef MAPGEN_STANDIN_NATIVE_H
#define MAPGEN_STANDIN_NATIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "mapgen/standin_elf.h"

/*
 * Renders the ELF file behind `fd` (read with pread()) to `ret` (empty, with a maximum); what lies
 * behind all that its headers speak of, as a bundle does, is left out: *end_ret is where it begins.
 * Values of the symbols in `elf` are vaddrs; one that ends in a call gets the byte behind it too.
 * The same symbols and file give the same bytes. `replaces`: they take the place of a symbol table
 * that the file may have.
 *
 * NULL on success, else why not, a static text: only little-endian ELF64 with section headers, and
 * without a symbol table that is not to be replaced, can serve. A build-id of another length, or
 * none, is no hindrance.
 */
const char *standin_native_finish(const struct standin_elf *elf, int fd, bool replaces,
				  struct buf *ret, uint8_t id_ret[STANDIN_ID_BYTES],
				  uint64_t *end_ret);

#endif
