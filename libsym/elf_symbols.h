/* SPDX-License-Identifier: MIT */
/*
 * The function symbols of an ELF file, read with libelf from bytes of our own:
 * .symtab if there is one, .dynsym otherwise. Knows which symbols are functions
 * and which of several names for one place is the better one. Knows nothing of
 * where the file is mapped.
 */
#ifndef LIBSYM_ELF_SYMBOLS_H
#define LIBSYM_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/image.h"

struct elf_symbol {
	uint64_t vaddr;
	uint64_t size_bytes;  /* as the table has it; 0: none given */
	uint64_t reach_bytes; /* the size, or up to the next symbol, and never past the section */
	const char *name;     /* lives as long as the table */
	uint32_t rank;        /* lower is better among names for one place */
};

struct elf_symbols {
	struct elf_symbol
		*items; /* by vaddr, then with a size before without, then by rank, then name */
	size_t count;
	/* private */
	struct sparse_file view;
};

/* An image without symbols yields none; that is no error. Errors: IO, STALE, FORMAT, NO_MEMORY. */
struct sym_error *elf_symbols_read(const struct image *image, struct elf_symbols *ret)
	__attribute__((warn_unused_result));
void elf_symbols_deinit(struct elf_symbols *symbols);

#endif
