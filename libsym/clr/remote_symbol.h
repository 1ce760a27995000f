/* SPDX-License-Identifier: MIT */
/*
 * Where a process has a symbol that one of its ELF images exports, out of its memory: no file is
 * read.
 */
#ifndef LIBSYM_CLR_REMOTE_SYMBOL_H
#define LIBSYM_CLR_REMOTE_SYMBOL_H

#include "libsym/clr/remote_memory.h"

enum {
	REMOTE_SYMBOL_BYTES = 64 /* of a name, with its NUL */
};

/*
 * `base_address` is where the ELF header of the image is mapped. *address_ret is 0 when it exports
 * nothing of that name. Errors: those of reading, UNSUPPORTED (32-bit), NOT_FOUND (nothing is
 * exported at all), ARGUMENT (a longer name).
 */
struct sym_error *remote_symbol_find(struct remote_memory *memory, uint64_t base_address,
				     const char *name, uint64_t *address_ret)
	__attribute__((warn_unused_result));

#endif
