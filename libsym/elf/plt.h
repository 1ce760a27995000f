/* SPDX-License-Identifier: MIT */
/*
 * The entries of an ELF file's procedure linkage tables (.plt, .plt.sec, .plt.got, .iplt). Each
 * entry jumps through a slot that the dynamic linker fills with one function. A relocation
 * identifies that function: by name, or by the vaddr of the function that selects it at start
 * (STT_GNU_IFUNC; most entries of the C library, all of a static program). Entries are recognised
 * by their instructions, not by their number, because the tables have many layouts. x86-64, i386,
 * AArch64.
 */
#ifndef LIBSYM_ELF_PLT_H
#define LIBSYM_ELF_PLT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/elf/elf_sections.h"
#include "libsym/elf/elf_symbols.h"
#include "libsym/error.h"
#include "libsym/file/object_file.h"

enum {
	PLT_SECTIONS = 4
};

/* Where the tables are. No entry lies elsewhere. */
struct plt_extents {
	struct plt_extent {
		uint64_t vaddr, size_bytes;
	} items[PLT_SECTIONS];
	size_t count;
};

/* Reads the section headers only. Errors: as plt_read(). */
struct sym_error *plt_extents_read(const struct object_file *object, struct plt_extents *ret)
	__attribute__((warn_unused_result));
bool plt_extents_contain(const struct plt_extents *extents, uint64_t vaddr);

struct plt_entry {
	uint64_t vaddr;
	uint32_t size_bytes;
	uint32_t target_bytes;
	/* name of the function in the string table, not always NUL terminated at target_bytes;
	 * valid as long as the table */
	const char *target;
};

struct plt {
	struct plt_entry *items; /* ascending by vaddr, disjoint */
	size_t count;
	/* private */
	struct elf_sections sections; /* contain the names */
	struct elf_symbols indirect;  /* contain names, too */
};

/* An object without such tables yields an empty list. Errors: IO, STALE, FORMAT, NO_MEMORY. */
struct sym_error *plt_read(const struct object_file *object, struct plt *ret)
	__attribute__((warn_unused_result));
void plt_deinit(struct plt *plt);

#define PLT_NONE SIZE_MAX

/* Number of the entry that covers `vaddr`, or PLT_NONE. */
size_t plt_find(const struct plt *plt, uint64_t vaddr);

#endif
