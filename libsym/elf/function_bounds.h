/* SPDX-License-Identifier: MIT */
/*
 * Where the functions of an ELF file start and end, with or without names: from .eh_frame, found by
 * its section or by PT_GNU_EH_FRAME. Sorted, disjoint, inside executable segments. A function that
 * the compiler split has one entry per part.
 */
#ifndef LIBSYM_ELF_FUNCTION_BOUNDS_H
#define LIBSYM_ELF_FUNCTION_BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/file/object_file.h"
#include "libsym/format/elf/eh_frame.h"

struct elf_sections;

/* The bytes of .eh_frame and the vaddr of the first one, found by the section or by
 * PT_GNU_EH_FRAME. The reader is empty if there is none. Valid as long as `sections`. */
struct sym_error *function_bounds_records(const struct object_file *object,
					  struct elf_sections *sections, struct reader *ret,
					  uint64_t *vaddr_ret) __attribute__((warn_unused_result));

struct function_bounds {
	struct eh_frame_function *items;
	size_t count;
};

#define FUNCTION_BOUNDS_NONE SIZE_MAX

enum {
	FUNCTION_BOUNDS_NEAR_BYTES = 64
};

/*
 * The functions of an object, read once and owned by it. Empty if there is no readable .eh_frame. A
 * malformed record ends the list; the records before it count. Returns NULL only if out of memory;
 * the next call then tries again.
 */
const struct function_bounds *function_bounds_of(struct object_file *object);

/* Number of the function that covers `vaddr`, or FUNCTION_BOUNDS_NONE. */
size_t function_bounds_find(const struct function_bounds *functions, uint64_t vaddr);

/*
 * How far the code at `vaddr` is known to be one function, where other functions may have no
 * symbols.
 *
 * If a function covers `vaddr`: its end. Otherwise the code was written in assembler, and so may be
 * the code after it. Then it is the next start or end (of a function, or `limit`: the next symbol
 * or the end of the section) if that is within FUNCTION_BOUNDS_NEAR_BYTES, as between memcpy and
 * memmove of musl; else the byte after `vaddr`. Linkers write a record for .plt even where
 * compilers wrote none.
 */
uint64_t function_bounds_own_end(const struct function_bounds *functions, uint64_t vaddr,
				 uint64_t limit);

/* Start of the next function after `vaddr`; UINT64_MAX if there is none. */
uint64_t function_bounds_next_after(const struct function_bounds *functions, uint64_t vaddr);

#endif
