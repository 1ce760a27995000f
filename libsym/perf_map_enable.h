/* SPDX-License-Identifier: MIT */
/*
 * The diagnostics socket of a snapshot's process, and the one command over it that changes
 * something in the process: write a perf map from now on. Is used only where somebody asked for it.
 */
#ifndef LIBSYM_PERF_MAP_ENABLE_H
#define LIBSYM_PERF_MAP_ENABLE_H

#include "libsym/clr/diagnostics_socket.h"
#include "libsym/process.h"

/* TMPDIR of the process, "/tmp" when it has none or it may not be seen; heap. */
struct sym_error *process_socket_directory(const struct process *process, char **ret)
	__attribute__((warn_unused_result));

/* `directory` and the descriptor of the root are borrowed. */
struct diagnostics_place process_diagnostics_place(const struct process *process,
						   const char *directory);

#endif
