/* SPDX-License-Identifier: MIT */
/*
 * The symbol of one position by a pass over the table of symbols: nothing is sorted, and of the
 * names only those are read that could be the answer. For the first few questions about an image
 * with many symbols, whose table takes a hundred times as long to sort. Answers as an index
 * over the same table does.
 */
#ifndef LIBSYM_ELF_GLANCE_H
#define LIBSYM_ELF_GLANCE_H

#include "libsym/debugfile.h"
#include "libsym/elf_symbols.h"
#include "libsym/error.h"

struct elf_glance;

/*
 * Of the table that is to be used: the image's own .symtab, else the larger one of .dynsym and its
 * debug file's. *ret is NULL where reading the whole table costs little, where it takes more than
 * one table to answer, and where anything is wrong with it: then the index has to be asked, and
 * says what. Errors: NO_MEMORY.
 */
struct sym_error *elf_glance_open(struct image *image, const struct debugfile_roots *roots,
				  struct elf_glance **ret) __attribute__((warn_unused_result));
void elf_glance_close(struct elf_glance *glance);

/* Is it a .symtab, which has every function? */
bool elf_glance_is_complete(const struct elf_glance *glance);
/* The debug file whose table it is, which lies where the image does; NULL: it is the image's own.
 */
struct image *elf_glance_debug_image(const struct elf_glance *glance);
/* Path of the image whose table it is. */
const char *elf_glance_path(const struct elf_glance *glance);

enum elf_glance_outcome {
	ELF_GLANCE_MISS,
	ELF_GLANCE_HIT,
	ELF_GLANCE_UNABLE, /* the index has to be asked */
};

/* The name in *ret lives as long as the table. Not for several threads at once. */
enum elf_glance_outcome elf_glance_find(struct elf_glance *glance, uint64_t vaddr,
					struct elf_symbol *ret);

DEFINE_GUARD(elf_glance, struct elf_glance *, elf_glance_close)
#define AUTO_ELF_GLANCE GUARDED(elf_glance)

#endif
