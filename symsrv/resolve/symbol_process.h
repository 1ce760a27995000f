/* SPDX-License-Identifier: MIT */
/* A process that reads a foreign file (symbol_child.h), seen from its server: starting, ending. */
#ifndef SYMSRV_RESOLVE_SYMBOL_PROCESS_H
#define SYMSRV_RESOLVE_SYMBOL_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "symsrv/resolve/symbol_message.h"

struct symbol_process {
	pid_t pid; /* 0: not started */
	int fd;    /* of the socket */
};

/* Starts `program`, and sends it the first message with the file. False: it was logged when there
 * is no process; symbol_process_end() in any case. */
bool symbol_process_start(const char *program, enum symbol_message_kind kind, uint32_t number,
			  int file_fd, struct symbol_process *ret);

/* Kills the process, waits for its end. Nothing when there is none. */
void symbol_process_end(struct symbol_process *process);

#endif
