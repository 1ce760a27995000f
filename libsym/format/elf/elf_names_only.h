/* SPDX-License-Identifier: MIT */
/*
 * An ELF file with the function names of another one and nothing else: the names-only file of a
 * debug file. Readers of ELF take it as a debug file with a symbol table and without DWARF.
 *
 *   file header, program headers    as in the debug file
 *   sections that are loaded        headers only (NOBITS), so that addresses have their section
 *   .note.gnu.build-id              with its bytes, or another section of notes that has the
 * build-id .symtab, .strtab                functions: local ones first, each part by address; names
 * of one address in the order of the debug file; names stay mangled
 *
 * System V ABI, chapters 4 and 5.
 */
#ifndef LIBSYM_FORMAT_ELF_ELF_NAMES_ONLY_H
#define LIBSYM_FORMAT_ELF_ELF_NAMES_ONLY_H

#include "libsym/base/buf.h"
#include "libsym/format/file/byte_source.h"

/*
 * Appends the file to `ret`, which must be empty. Returns false if it cannot be made: the bytes
 * contradict the format, there is no .symtab or build-id, or there is no memory (ret->failure).
 * *failure_ret is then a static text.
 */
bool elf_names_only_make(const struct byte_source *source, struct buf *ret,
			 const char **failure_ret);

#endif
