/* SPDX-License-Identifier: MIT */
/*
 * The function symbols of an ELF file: from .symtab if it is complete, else from .dynsym and what
 * else there is. Decides which symbols are functions, and which of several names for one vaddr is
 * preferred.
 */
#ifndef LIBSYM_ELF_ELF_SYMBOLS_H
#define LIBSYM_ELF_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/elf/elf_sections.h"
#include "libsym/error.h"
#include "libsym/file/object_file.h"

struct elf_symbol {
	uint64_t vaddr;
	uint64_t size_bytes; /* as in the table; 0: not given */
	/* its size, that of another name, or up to the next symbol; never past the section */
	uint64_t reach_bytes;
	/*
	 * Valid as long as the table. In .symtab it may end with a version: "fopen@@GLIBC_2.2.5".
	 */
	const char *name;
	uint32_t traits; /* private: preference among names for one vaddr */
};

struct elf_symbols {
	/* By vaddr; then symbols with a size first; then the preferred name first. */
	struct elf_symbol *items;
	size_t count;
	bool has_full_table; /* .symtab is complete */
	struct elf_build_id build_id;
	/* private */
	struct elf_sections sections; /* contain the names */
	bool indirect_only;
	struct budget_account *account; /* of the object */
	uint64_t charged_bytes;         /* charged for `items` */
};

/* An object without symbols yields an empty table. Errors: IO, STALE, FORMAT, NO_MEMORY. */
struct sym_error *elf_symbols_read(const struct object_file *object, struct elf_symbols *ret)
	__attribute__((warn_unused_result));
void elf_symbols_deinit(struct elf_symbols *symbols);

/* Reads only functions that are selected at program start (STT_GNU_IFUNC). Their vaddr is that of
 * the selecting function. */
struct sym_error *elf_symbols_read_indirect(const struct object_file *object,
					    struct elf_symbols *ret)
	__attribute__((warn_unused_result));

/* Length of the name without its version. */
size_t elf_symbols_name_bytes(const struct elf_symbol *symbol);

#endif
