/* SPDX-License-Identifier: MIT */
/*
 * The kernel in the public header: where kallsyms is, and how answers about kernel addresses look.
 * kernel_source.h has the symbols.
 *
 * The text of a running kernel does not change. Modules, BPF programs and trampolines come and go,
 * and their memory is used again.
 * So the kernel's own text is read once. Other addresses are looked up in a second list. It is read
 * again after something was loaded or freed (kernel_changes.h), at the next refresh of a resolver,
 * or after a second.
 */
#ifndef LIBSYM_RESOLVER_KERNEL_H
#define LIBSYM_RESOLVER_KERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "libsym/error.h"

/* Addresses of the kernel. Values below, and above the user half, are not addresses. */
static inline bool kernel_has_address(uint64_t address)
{
#ifdef __powerpc64__
	return address >= 0xc000000000000000;
#else
	/* With five levels of page tables. Hardly any value that is not an address is here. */
	return address >= 0xff00000000000000;
#endif
}

/* As sym_kernel_open(), from an open directory `proc` (or one below it, with "../kallsyms"). */
struct sym_error *kernel_open_at(int directory, const char *name, struct sym_kernel **ret)
	__attribute__((warn_unused_result));

/* The next address outside the kernel's own text causes the list to be read. */
void kernel_refresh(struct sym_kernel *kernel);

/* True when the answer is valid as long as the kernel runs. */
bool kernel_answer_stays(const struct sym_answer *answer);

/*
 * Fills in all fields except the address.
 * `begin_ns`: start of the batch (kernel_clock_ns()). If changes cannot be detected, the list must
 * have been read since then.
 */
void kernel_answer(const struct sym_kernel *kernel, uint64_t begin_ns, struct sym_answer *answer);

uint64_t kernel_clock_ns(void);

DEFINE_GUARD(sym_kernel, struct sym_kernel *, sym_kernel_close)
#define AUTO_KERNEL GUARDED(sym_kernel)

#endif
