/* SPDX-License-Identifier: MIT */
/*
 * The functions of a Go program, from its runtime's function table. A look-up is a binary search in
 * the file. Only the pages that it needs are read; they stay, and names point into them. A program
 * without the table, or with a table that contradicts itself, has no functions here.
 */
#ifndef LIBSYM_ELF_GO_FUNCTIONS_H
#define LIBSYM_ELF_GO_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/file/object_file.h"
#include "libsym/format/elf/gopclntab.h"

struct go_functions;

/* Searches for the table once; the object owns the result. Returns NULL only if out of memory; the
 * next call then tries again. */
struct go_functions *go_functions_of(struct object_file *object);

/* 0 if the object is not a Go program or its table cannot be used. */
uint64_t go_functions_count(const struct go_functions *functions);

/* By number, in the order of vaddrs. Returns false if the function is malformed or starts below
 * `least_vaddr`. Thread safe, like all functions here. Names are valid as long as the object. */
bool go_functions_at(struct go_functions *functions, uint64_t number, uint64_t least_vaddr,
		     struct gopclntab_function *ret);

/* The function that covers a vaddr. */
bool go_functions_find(struct go_functions *functions, uint64_t vaddr,
		       struct gopclntab_function *ret);

/* The latest end of non-Go code that starts at `vaddr`: the first Go function at or after it, or
 * `vaddr` itself inside one; UINT64_MAX if there is no limit. */
uint64_t go_functions_bound(struct go_functions *functions, uint64_t vaddr);

/* The source line of a vaddr, and the functions that were inlined there: innermost first, at most
 * `inlined_max`. Returns false if no function covers it. */
bool go_functions_describe(struct go_functions *functions, uint64_t vaddr,
			   struct gopclntab_line *ret, struct sym_inlined *inlined,
			   size_t inlined_max, size_t *inlined_count_ret);

#endif
