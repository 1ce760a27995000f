/* SPDX-License-Identifier: MIT */
/*
 * Runtime functions of a ReadyToRun image and the ranges of code that follow
 * from them and from the method entries. For the files of the reader only.
 */
#ifndef LIBSYM_FORMAT_R2R_FUNCTIONS_H
#define LIBSYM_FORMAT_R2R_FUNCTIONS_H

#include "libsym/format/r2r_internal.h"

/* Finds and checks section 102, and where cold parts begin (section 120). */
struct sym_error *r2r_read_functions(struct r2r *r2r);

/* Number of the runtime function that begins at `rva`; r2r->function_count: none does. */
uint32_t r2r_function_at(const struct r2r *r2r, uint32_t rva);

/* Fills r2r->ranges from the entries. */
struct sym_error *r2r_find_ranges(struct r2r *r2r);

#endif
