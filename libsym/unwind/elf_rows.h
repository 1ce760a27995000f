/* SPDX-License-Identifier: MIT */
/*
 * Rows for the code of one ELF file, by vaddr, from its .eh_frame and .debug_frame.
 * Opening sorts the tables. A row is made at each request.
 */
#ifndef LIBSYM_UNWIND_ELF_ROWS_H
#define LIBSYM_UNWIND_ELF_ROWS_H

#include "libsym/error.h"
#include "libsym/file/object_file.h"
#include "libsym/format/elf/frame_row.h"

struct elf_rows;

/*
 * `object` is borrowed and must outlive the object. A file without tables has no rows.
 * Errors: those of reading; NO_MEMORY; UNSUPPORTED for another machine.
 */
struct sym_error *elf_rows_open(const struct object_file *object, struct elf_rows **ret)
	__attribute__((warn_unused_result));
void elf_rows_close(struct elf_rows *rows);

/*
 * False when no function of the tables contains `vaddr`, or its program is invalid.
 * `is_call`: the vaddr is in a call instruction, which is in no epilog.
 * *expressions_ret: the section with the row's expressions; lives as long as `rows`. Unchanged
 * when the row has none.
 */
bool elf_rows_find(const struct elf_rows *rows, uint64_t vaddr, bool is_call, struct frame_row *ret,
		   const struct reader **expressions_ret);

#endif
