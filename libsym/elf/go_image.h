/* SPDX-License-Identifier: MIT */
/*
 * The ELF object of a Go program, except its symbols: where its function table is (also if the
 * linker has joined its section with others), where its code starts, and where its inlining trees
 * are. Reads sections, relocations and the runtime's description of the program (moduledata) piece
 * by piece. go_functions.h reads the functions.
 */
#ifndef LIBSYM_ELF_GO_IMAGE_H
#define LIBSYM_ELF_GO_IMAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/elf/elf_sections.h"
#include "libsym/format/elf/gopclntab.h"

struct go_table_place {
	uint64_t vaddr;
	uint64_t offset;     /* into the object */
	uint64_t size_bytes; /* upper bound; 0: not a Go program */
};

/* Errors: IO, STALE, NO_MEMORY. */
struct sym_error *go_image_find_table(struct elf_sections *sections, struct go_table_place *ret)
	__attribute__((warn_unused_result));

/* Start of the program's code, from which its table counts; 0: unknown. `table` is the one at
 * `vaddr`, as its header describes it. */
struct sym_error *go_image_text_start(struct elf_sections *sections, const struct gopclntab *table,
				      uint64_t vaddr, uint64_t *ret)
	__attribute__((warn_unused_result));

/* Vaddr from which offsets of function data count; 0: unknown. `table` has its text start. Since Go
 * 1.18. */
struct sym_error *go_image_function_data(struct elf_sections *sections,
					 const struct gopclntab *table, uint64_t vaddr,
					 uint64_t *ret) __attribute__((warn_unused_result));

#endif
