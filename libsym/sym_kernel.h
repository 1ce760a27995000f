/* SPDX-License-Identifier: MIT */
/**
 * @file
 * Part of libsym.h: functions of the kernel.
 */
#ifndef LIBSYM_SYM_KERNEL_H
#define LIBSYM_SYM_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "libsym/sym_error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sym_result;
struct sym_symbols;

/**
 * The functions of the kernel, of its modules, and of BPF programs and their trampolines.
 *
 * The kernel's own text is read once.
 * Memory of an unloaded module or BPF program is used again by later ones.
 * A call that needs them checks whether other BPF programs, BPF links or modules are loaded.
 * It reads the list again if so.
 * Code without such a number (ftrace trampolines, kprobe slots) is at most one second old.
 * Without CAP_SYS_ADMIN the check is impossible, so each such call reads the list.
 * A recorded kernel does not change.
 */
struct sym_kernel;

/**
 * Reads the symbols of the kernel.
 *
 * A resolver does so by itself when it meets an address of the kernel.
 * Hidden addresses (kernel.kptr_restrict without CAP_SYSLOG) are not an error.
 * Each answer then has a reason that says so, as does sym_kernel_problem().
 *
 * @param root  Directory that contains proc/kallsyms; NULL: this machine.
 * @param ret  The kernel; close it with sym_kernel_close().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_kernel_open(const char *root, struct sym_kernel **ret);

/**
 * Closes a kernel.
 *
 * @param kernel  NULL is accepted.
 */
SYM_API void sym_kernel_close(struct sym_kernel *kernel);

/** Returns why there are no symbols; NULL when there are some. */
SYM_API const char *sym_kernel_problem(const struct sym_kernel *kernel);

/**
 * Resolves addresses of the kernel, as sym_resolver_resolve() does for a process.
 *
 * sym_answer.image_path is "[kernel.kallsyms]", or the module as "[NAME]".
 * kallsyms has the start of a function, not its end.
 * A function ends where the next one begins, if both are in the kernel or in the same module.
 * The last function of a module ends with its page, or where the next module begins in that page.
 * Names live as long as `kernel`.
 * Several threads may call it, each with its own result.
 *
 * @param addresses  Addresses in the kernel; `count` of them.
 * @param result  Receives the answers, in the same order.
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_kernel_resolve(const struct sym_kernel *kernel,
							    const uint64_t *addresses, size_t count,
							    struct sym_result *result);

/**
 * Lists all functions of the kernel, by address.
 *
 * @param ret  The list; free it with sym_symbols_destroy().
 */
SYM_API SYM_MUST_CHECK struct sym_error *sym_kernel_symbols(const struct sym_kernel *kernel,
							    struct sym_symbols **ret);

#ifdef __cplusplus
}
#endif

#endif
