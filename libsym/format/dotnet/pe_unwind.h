/* SPDX-License-Identifier: MIT */
/*
 * Unwind information of x86-64 code in PE files and of code that a .NET runtime has jitted: the
 * codes that describe a prolog, and the instructions of an epilog, which has no codes.
 *
 *   UNWIND_INFO       u8 version (low 3 bits), flags (high 5)
 *                     u8 size of the prolog in bytes
 *                     u8 number of codes
 *                     u8 frame register (low 4), its offset in units of 16 (high 4)
 *                     codes, padded to an even number
 *                     with the flag CHAINED: the RUNTIME_FUNCTION of the parent
 *   code              u8 offset in the prolog after the instruction
 *                     u8 operation (low 4), info (high 4)
 *                     one or two more u16 for large operands
 *                     the last instruction of the prolog comes first
 *   RUNTIME_FUNCTION  u32 begin, u32 end, u32 unwind info; all rvas
 *
 * "x64 exception handling" in Microsoft's C++ reference. Operation 11, SET_FPREG_LARGE, belongs to
 * .NET: dotnet/runtime src/coreclr/inc/win64unwind.h.
 */
#ifndef LIBSYM_FORMAT_DOTNET_PE_UNWIND_H
#define LIBSYM_FORMAT_DOTNET_PE_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/format/elf/frame_row.h"

/* Returns the bytes of the unwind info at an rva, and how many follow; NULL if there are none. */
typedef const uint8_t *pe_unwind_info_fn(void *context, uint32_t rva, size_t *available_bytes_ret);

struct pe_unwind_function {
	uint32_t begin_rva, end_rva;
	uint32_t unwind_rva;
};

/* The row in a prolog or a body, for the instruction at begin_rva + `offset`. Returns false if the
 * codes are malformed. */
bool pe_unwind_row(const struct pe_unwind_function *function, uint32_t offset,
		   pe_unwind_info_fn *info_at, void *context, struct frame_row *ret);

/* Size of the prolog in bytes; 0 if the info cannot be read. */
uint32_t pe_unwind_prolog_bytes(const uint8_t *info, size_t size_bytes);

/* The most bytes that pe_unwind_epilog_row() reads. */
enum {
	PE_UNWIND_EPILOG_BYTES = 64
};

/*
 * The row in an epilog: code that only releases the frame, pops registers, and returns or jumps out
 * of the function. Returns false if the code is not an epilog.
 *
 * code: from the instruction on
 * offset: of the instruction in the function
 * function_bytes: size of the function
 */
bool pe_unwind_epilog_row(const uint8_t *code, size_t size_bytes, uint32_t offset,
			  uint32_t function_bytes, struct frame_row *ret);

/* The row in an epilog of any compiler that ends with a return. A jump is no end: compilers of C++
 * put parts of a function elsewhere. */
bool pe_unwind_return_row(const uint8_t *code, size_t size_bytes, struct frame_row *ret);

#endif
