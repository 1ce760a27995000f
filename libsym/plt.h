/* SPDX-License-Identifier: MIT */
/*
 * Entries of the procedure linkage tables of an ELF file (.plt, .plt.sec,
 * .plt.got): each jumps through a slot that the dynamic linker fills with one
 * function, and a relocation says which: by its name, or, for those that the file
 * chooses itself by the processor (STT_GNU_IFUNC; most entries of the C library, all
 * of a static program), by the vaddr of the function that chooses. An entry is believed by its
 * instructions, not by its number: the tables have many layouts. x86-64, i386,
 * AArch64.
 */
#ifndef LIBSYM_PLT_H
#define LIBSYM_PLT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/elf_sections.h"
#include "libsym/elf_symbols.h"
#include "libsym/error.h"
#include "libsym/image.h"

enum {
	PLT_SECTIONS = 4
};

/* Where the tables are: no entry is anywhere else. */
struct plt_extents {
	struct plt_extent {
		uint64_t vaddr, size_bytes;
	} items[PLT_SECTIONS];
	size_t count;
};

/* From the section headers alone. Errors: as plt_read(). */
struct sym_error *plt_extents_read(const struct image *image, struct plt_extents *ret)
	__attribute__((warn_unused_result));
bool plt_extents_have(const struct plt_extents *extents, uint64_t vaddr);

struct plt_entry {
	uint64_t vaddr;
	uint32_t size_bytes;
	uint32_t target_bytes;
	const char *target; /* name of the function as the symbol table has it, not always ended
			     * there; lives as long as the table */
};

struct plt {
	struct plt_entry *items; /* by vaddr, disjoint */
	size_t count;
	/* private */
	struct elf_sections sections; /* the names are in it */
	struct elf_symbols indirect;  /* and in this */
};

/* An image without such tables yields none; that is no error. Errors: IO, STALE, FORMAT, NO_MEMORY.
 */
struct sym_error *plt_read(const struct image *image, struct plt *ret)
	__attribute__((warn_unused_result));
void plt_deinit(struct plt *plt);

#define PLT_NONE SIZE_MAX

/* Number of the entry that covers `vaddr`, or PLT_NONE. */
size_t plt_find(const struct plt *plt, uint64_t vaddr);

#endif
