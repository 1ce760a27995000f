/* SPDX-License-Identifier: MIT */
/*
 * What the ELF image of a Go program says of itself beside its symbols: where its
 * function table is (also where the linker has joined its section with others), where
 * its code begins, and where its inlining trees are. Knows sections, relocations and the
 * runtime's description of the program (moduledata); reads each piece by piece and keeps
 * nothing of it. Refuses to know functions (go_functions.h).
 */
#ifndef LIBSYM_GO_IMAGE_H
#define LIBSYM_GO_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/elf_sections.h"
#include "libsym/format/gopclntab.h"

struct go_table_place {
	uint64_t vaddr;
	uint64_t offset;     /* into the image */
	uint64_t size_bytes; /* at most; 0: no Go program */
};

/* Errors: IO, STALE, NO_MEMORY. */
struct sym_error *go_image_find_table(struct elf_sections *sections, struct go_table_place *ret)
	__attribute__((warn_unused_result));

/*
 * Where the code of the program begins, from which its table counts; 0: that cannot be told.
 * `table` is the one at `vaddr`, with what its header says.
 */
struct sym_error *go_image_text_start(struct elf_sections *sections, const struct gopclntab *table,
				      uint64_t vaddr, uint64_t *ret)
	__attribute__((warn_unused_result));

/* Vaddr of the data of functions, from which their offsets count; 0: that cannot be told. `table`
 * has its text start. Since Go 1.18. */
struct sym_error *go_image_function_data(struct elf_sections *sections,
					 const struct gopclntab *table, uint64_t vaddr,
					 uint64_t *ret) __attribute__((warn_unused_result));

#endif
