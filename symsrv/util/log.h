/* SPDX-License-Identifier: MIT */
/*
 * Messages for the operator: one line each on standard error, with the priority that journald reads
 * ("<4>") when standard error is the journal.
 */
#ifndef SYMSRV_UTIL_LOG_H
#define SYMSRV_UTIL_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
};

/* Text of upstreams and clients may be in messages: control characters become '?'. Writing never
 * waits for a pipe or socket: lines that it does not accept are counted, and the count is logged
 * later. */
void log_message(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* For a kind of message that clients can cause at will: one line an hour. A metric counts them all.
 * Zeroed at first. */
struct log_limit {
	_Atomic int64_t next_ms;
};

/* Whether a message is to be written now. `now_ms` is the time since any moment. */
bool log_limit_allows(struct log_limit *limit, int64_t now_ms);

/* The end of such a message. */
#define LOG_LIMIT_NOTE " (more are counted in /metrics, and not logged for an hour)"

/* Opens what the first message would open, because another user may not be able to open the pipe.
 */
void log_begin(void);

/* A descriptor of standard error for the caller; for a pipe, one that fails with EAGAIN when it
 * would block. -1: none, errno. */
int log_open_output(void);

/* As write(), without blocking on a socket either: EAGAIN. */
ssize_t log_write(int fd, const void *bytes, size_t count);

#endif
