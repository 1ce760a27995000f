/* SPDX-License-Identifier: MIT */
/*
 * Messages for the operator: a line each on standard error, with the priority
 * that journald reads ("<4>") when standard error is the journal.
 */
#ifndef SYMSRV_LOG_H
#define SYMSRV_LOG_H

#include <stddef.h>
#include <sys/types.h>

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
};

/* What upstreams and clients say ends up in messages: control characters become '?'. A pipe or
 * socket that nobody reads is not waited for: what it does not take is counted, and that is told
 * later. */
void log_message(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A descriptor of standard error, the caller's; of a pipe one that fails with EAGAIN where it would
 * wait. -1: none, errno. */
int log_open_output(void);

/* As write(), and does not wait for a socket either: EAGAIN. */
ssize_t log_write(int fd, const void *bytes, size_t count);

#endif
