/* SPDX-License-Identifier: MIT */
/*
 * The function symbols of an ELF file, read from its sections:
 * .symtab if it is a full one, else .dynsym with what else there is. Knows which symbols are
 * functions and which of several names for one place is the better one. Knows nothing of where the
 * file is mapped.
 */
#ifndef LIBSYM_ELF_SYMBOLS_H
#define LIBSYM_ELF_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/elf_sections.h"
#include "libsym/error.h"
#include "libsym/image.h"

struct elf_symbol {
	uint64_t vaddr;
	uint64_t size_bytes;  /* as the table has it; 0: none given */
	uint64_t reach_bytes; /* the size, or that of another name, or up to the next; never past
				 the section */
	const char *name;     /* lives as long as the table */
	uint32_t name_bytes;  /* up to the version in "fopen@@GLIBC_2.2.5": not always the whole */
	uint32_t rank;        /* lower is better among names for one place */
};

struct elf_symbols {
	/* By vaddr, then with a size before without, then by rank, then name. */
	struct elf_symbol *items;
	size_t count;
	bool has_full_table; /* a .symtab with all functions, not only .dynsym */
	struct elf_build_id build_id;
	/* private */
	struct elf_sections sections; /* the names are in it */
	bool indirect_only;
};

/* An image without symbols yields none; that is no error. Errors: IO, STALE, FORMAT, NO_MEMORY. */
struct sym_error *elf_symbols_read(const struct image *image, struct elf_symbols *ret)
	__attribute__((warn_unused_result));
void elf_symbols_deinit(struct elf_symbols *symbols);

/* The same of those functions only that another one chooses when the program starts
 * (STT_GNU_IFUNC); at their vaddr is the one that chooses. */
struct sym_error *elf_symbols_read_indirect(const struct image *image, struct elf_symbols *ret)
	__attribute__((warn_unused_result));

/* .symtab if the linker wrote it, NULL if there is none or strip has left next to nothing of it, or
 * no local functions: a full one repeats what .dynsym has, and has those of crtbegin.o at least. */
const GElf_Shdr *elf_symbols_full_table(const struct elf_sections *sections);

/* ---- one entry of a table, for those who read it themselves ---- */

/*
 * The versions of a table's names (.gnu.version: two bytes for each entry), NULL if it has none
 * that can be read. Only .dynsym has them there; .symtab has them in the names.
 */
const GElf_Shdr *elf_symbols_versions(const struct elf_sections *sections, const GElf_Shdr *table);

/* What its version says of a symbol that was made: today's name or one for old programs. */
void elf_symbol_take_version(struct elf_symbol *symbol, uint16_t version);

/*
 * lld gives a function that is chosen at start, and whose address is taken, the place of its entry
 * in .iplt, and no size: it reaches to the next entry then, not over those of all others. To be
 * called before entries are made.
 */
void elf_symbols_find_stubs(struct elf_sections *sections);

/* What is left of `symbol` when it is no function of ours: false. Its reach is that up to the end
 * of its section, at most its size. */
bool elf_symbol_make(const struct elf_sections *sections, const GElf_Sym *symbol, const char *name,
		     struct elf_symbol *ret);

/* The order of elf_symbols.items. */
int elf_symbol_compare(const void *left, const void *right);

#endif
