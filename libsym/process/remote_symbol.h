/* SPDX-License-Identifier: MIT */
/*
 * Finds the address of a symbol that an ELF image of a process exports, in its memory. No file is
 * read.
 */
#ifndef LIBSYM_PROCESS_REMOTE_SYMBOL_H
#define LIBSYM_PROCESS_REMOTE_SYMBOL_H

#include "libsym/process/remote_memory.h"

enum {
	REMOTE_SYMBOL_BYTES = 64 /* of a name, with its NUL */
};

/*
 * `base_address`: where the ELF header of the image is mapped.
 * *address_ret is 0 when the image does not export the name.
 * Errors: those of reading; UNSUPPORTED (32-bit); NOT_FOUND (no exports at all); ARGUMENT (name too
 * long).
 */
struct sym_error *remote_symbol_find(struct remote_memory *memory, uint64_t base_address,
				     const char *name, uint64_t *address_ret)
	__attribute__((warn_unused_result));

#endif
