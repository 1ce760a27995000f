/* SPDX-License-Identifier: MIT */
/* Rows for the precompiled methods of one ReadyToRun image on x86-64, found by rva. */
#ifndef LIBSYM_UNWIND_R2R_ROWS_H
#define LIBSYM_UNWIND_R2R_ROWS_H

#include "libsym/error.h"
#include "libsym/file/object_file.h"
#include "libsym/format/elf/frame_row.h"

struct r2r_rows;

/* `object` gets one more user until r2r_rows_close(). UNSUPPORTED: not such an image. */
struct sym_error *r2r_rows_open(struct object_file *object, struct r2r_rows **ret)
	__attribute__((warn_unused_result));
void r2r_rows_close(struct r2r_rows *rows);

/*
 * False when no runtime function contains the rva, or its unwind info is invalid.
 * `is_call`: the rva is in a call instruction, which is in no prolog and no epilog.
 */
bool r2r_rows_find(const struct r2r_rows *rows, uint32_t rva, bool is_call, struct frame_row *ret);

#endif
