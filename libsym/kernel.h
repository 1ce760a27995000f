/* SPDX-License-Identifier: MIT */
/*
 * The kernel as the public header shows it: where kallsyms is, what an answer
 * about an address of the kernel looks like. Symbols are kernel_source's.
 */
#ifndef LIBSYM_KERNEL_H
#define LIBSYM_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/error.h"

/* Addresses of the kernel. Below, and above those of programs, are values that are no addresses. */
static inline bool kernel_has_address(uint64_t address)
{
#ifdef __powerpc64__
	return address >= 0xc000000000000000;
#else
	/* With five levels of page tables; hardly any value that is no address lies here. */
	return address >= 0xff00000000000000;
#endif
}

/* As sym_kernel_open(), from an open directory `proc` (or one below it, as "../kallsyms" tells). */
struct sym_error *kernel_open_at(int directory, const char *name, struct sym_kernel **ret)
	__attribute__((warn_unused_result));

/* Fills in all but the address. */
void kernel_answer(const struct sym_kernel *kernel, struct sym_answer *answer);

DEFINE_GUARD(sym_kernel, struct sym_kernel *, sym_kernel_close)
#define AUTO_KERNEL GUARDED(sym_kernel)

#endif
