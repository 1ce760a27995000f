/* SPDX-License-Identifier: MIT */
/*
 * Detects whether code of the running kernel was loaded or freed, by the ids of BPF programs, BPF
 * links and modules.
 * That costs a fraction of reading kallsyms.
 * An id of a program or link is not used again before 2^31 others. A link creates the trampoline of
 * its program.
 * Code without an id (ftrace, kprobes) is not detected.
 */
#ifndef LIBSYM_RESOLVER_KERNEL_CHANGES_H
#define LIBSYM_RESOLVER_KERNEL_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

/* A digest of what is loaded. False when it cannot be read (no CAP_SYS_ADMIN). */
bool kernel_changes_digest(uint64_t *ret);

#endif
