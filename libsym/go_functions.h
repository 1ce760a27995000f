/* SPDX-License-Identifier: MIT */
/*
 * The functions of a Go program by the table that its runtime has of them: found by
 * halves in the file, of which only those pages are read that a question leads to; they
 * stay, and names are in them. Nothing is made of it in memory. A program without the
 * table, or one that contradicts itself, has no functions here.
 */
#ifndef LIBSYM_GO_FUNCTIONS_H
#define LIBSYM_GO_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libsym/error.h"
#include "libsym/format/gopclntab.h"
#include "libsym/image.h"

struct go_functions;

/* Looks for the table once for all who ask of the image, which keeps it. NULL for want of memory
 * only: who asks next tries again. */
struct go_functions *go_functions_of(struct image *image);

/* For the image, when it is closed. NULL is accepted. */
void go_functions_destroy(struct go_functions *functions);

/* 0: the image is no Go program, or its table is not to be used. */
uint64_t go_functions_count(const struct go_functions *functions);

/* By number, in the order of vaddrs; false for one that makes no sense, or begins below
 * `least_vaddr`. Thread safe, as all here. Names live as long as the image. */
bool go_functions_at(struct go_functions *functions, uint64_t number, uint64_t least_vaddr,
		     struct gopclntab_function *ret);

/* The function that covers a vaddr. */
bool go_functions_find(struct go_functions *functions, uint64_t vaddr,
		       struct gopclntab_function *ret);

/* Where code of somebody else that begins at `vaddr` ends at the latest: where the first function
 * at or behind it begins, or at once inside one; UINT64_MAX: nothing ends it. */
uint64_t go_functions_bound(struct go_functions *functions, uint64_t vaddr);

/*
 * The source line of a vaddr, and what was inlined there: innermost first, at most `inlined_max`.
 * False when no function covers it.
 */
bool go_functions_describe(struct go_functions *functions, uint64_t vaddr,
			   struct gopclntab_line *ret, struct sym_inlined *inlined,
			   size_t inlined_max, size_t *inlined_count_ret);

#endif
