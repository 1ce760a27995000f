/* SPDX-License-Identifier: MIT */
/* Runtime functions of a ReadyToRun image, and the code ranges that follow from them and from the
 * method entries. Private to the ReadyToRun reader. */
#ifndef LIBSYM_FORMAT_DOTNET_R2R_FUNCTIONS_H
#define LIBSYM_FORMAT_DOTNET_R2R_FUNCTIONS_H

#include "libsym/format/dotnet/r2r_internal.h"

/* Finds and checks section 102, and where cold parts start (section 120). */
struct sym_error *r2r_read_functions(struct r2r *r2r);

/* Number of the runtime function that starts at `rva`; r2r->function_count if none does. */
uint32_t r2r_function_at(const struct r2r *r2r, uint32_t rva);

/* Fills r2r->ranges from the entries. */
struct sym_error *r2r_find_ranges(struct r2r *r2r);

#endif
