/* SPDX-License-Identifier: MIT */
/* The location of a process's diagnostics socket. */
#ifndef LIBSYM_CLR_DIAGNOSTICS_DIAGNOSTICS_ADDRESS_H
#define LIBSYM_CLR_DIAGNOSTICS_DIAGNOSTICS_ADDRESS_H

#include "libsym/clr/diagnostics/diagnostics_socket.h"
#include "libsym/process/process.h"

/* TMPDIR of the process; "/tmp" when it is unset or cannot be read. From malloc(). */
struct sym_error *diagnostics_address_directory(const struct process *process, char **ret)
	__attribute__((warn_unused_result));

/* Borrows `directory` and the descriptor of the root. */
struct diagnostics_place diagnostics_address_of(const struct process *process,
						const char *directory);

#endif
