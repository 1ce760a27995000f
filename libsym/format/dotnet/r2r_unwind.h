/* SPDX-License-Identifier: MIT */
/* The runtime functions of a ReadyToRun image (section 102), for unwinding: the one that covers an
 * rva, with its unwind info. Reads the header and this table only. x86-64 images. */
#ifndef LIBSYM_FORMAT_DOTNET_R2R_UNWIND_H
#define LIBSYM_FORMAT_DOTNET_R2R_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/format/dotnet/pe.h"
#include "libsym/format/dotnet/pe_unwind.h"

struct r2r_unwind {
	const uint8_t *rows; /* point into the image's bytes */
	uint32_t count;
};

/*
 * Returns false for an image of another machine, without code, or with a table outside the image.
 */
bool r2r_unwind_open(const struct pe *pe, struct r2r_unwind *ret);

/* Returns false if no runtime function covers the rva. */
bool r2r_unwind_find(const struct r2r_unwind *table, uint32_t rva, struct pe_unwind_function *ret);

#endif
