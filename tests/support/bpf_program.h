/* SPDX-License-Identifier: MIT */
/* Small BPF programs that are loaded into the running kernel and freed, and the kernel's own list
 * of them. Needs root, and a kernel that lists BPF programs in kallsyms. */
#ifndef TESTS_SUPPORT_BPF_PROGRAM_H
#define TESTS_SUPPORT_BPF_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

/* A descriptor, or -1; close() frees the program. At most 15 letters. */
int bpf_program_load(const char *name);

/* The program's line in /proc/kallsyms. Returns false if there is none, also because addresses are
 * hidden. */
bool bpf_program_listed(const char *name, uint64_t *address_ret);

/* Closes `fd` and waits until the list has no line of the program. */
void bpf_program_free(int fd, const char *name);

#endif
