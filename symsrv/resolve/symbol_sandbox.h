/* SPDX-License-Identifier: MIT */
/*
 * The rights of a process that reads foreign debug information: memory and CPU time with a limit,
 * and no system calls but those that read files, manage memory and answer over a socket. It can
 * make no connection, start no program, write no file and send no signal.
 *
 * Reading is restricted to one file by Landlock, where the kernel has it (Linux 5.13).
 */
#ifndef SYMSRV_RESOLVE_SYMBOL_SANDBOX_H
#define SYMSRV_RESOLVE_SYMBOL_SANDBOX_H

#include <stdbool.h>

/* For each request. */
#define SYMBOL_SANDBOX_CPU_S 30u
/* Address space: the debug information of the largest libraries unpacks to half a gigabyte. */
#define SYMBOL_SANDBOX_MEMORY_BYTES (UINT64_C(2) << 30)

/* Limits this process for ever; `readable_fd`: the one file that it may open. False when the kernel
 * does not restrict it: then it must not go on. */
bool symbol_sandbox_enter(int readable_fd);

/* Allows the CPU time of one more request. */
bool symbol_sandbox_allow_request(void);

#endif
