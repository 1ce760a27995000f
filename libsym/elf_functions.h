/* SPDX-License-Identifier: MIT */
/*
 * Where the functions of an ELF file begin and end, whether or not they have
 * names: from .eh_frame, found by its section or, without section headers, by
 * PT_GNU_EH_FRAME. Sorted, disjoint, inside executable segments, 8 bytes each. Knows
 * no names; a function that the compiler split is one piece for each part.
 */
#ifndef LIBSYM_ELF_FUNCTIONS_H
#define LIBSYM_ELF_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/image.h"

struct elf_function_extent {
	uint32_t distance; /* from `base` to its first byte */
	uint32_t size_bytes;
};

struct elf_functions {
	uint64_t base; /* vaddr of the first function */
	struct elf_function_extent *items;
	size_t count;
};

#define ELF_FUNCTIONS_NONE SIZE_MAX

/*
 * Read once for all who ask of the image, which keeps them. One without .eh_frame, or that
 * cannot be read, has none. Records that make no sense end the list; what came before
 * counts. Code further than 4 GiB behind the first function is left out. NULL for want of
 * memory only: who asks next tries again.
 */
const struct elf_functions *elf_functions_of(struct image *image);

/* For the image, when it is closed. NULL is accepted. */
void elf_functions_destroy(struct elf_functions *functions);

/* Number of the function that covers `vaddr`, or ELF_FUNCTIONS_NONE. */
size_t elf_functions_find(const struct elf_functions *functions, uint64_t vaddr);

/* Where code that begins at `vaddr` ends at the latest: with the function that covers it, else
 * where the next one begins; UINT64_MAX when there is neither. */
uint64_t elf_functions_end_of(const struct elf_functions *functions, uint64_t vaddr);

/* Where the next function begins behind `vaddr`; UINT64_MAX when there is none. */
uint64_t elf_functions_next_after(const struct elf_functions *functions, uint64_t vaddr);

#endif
