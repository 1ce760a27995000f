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

/* Fills r2r->ranges from the entries. */
struct sym_error *r2r_find_ranges(struct r2r *r2r);

#endif
