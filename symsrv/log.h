/* SPDX-License-Identifier: MIT */
/*
 * Messages for the operator: a line each on standard error, with the priority
 * that journald reads ("<4>") when standard error is the journal.
 */
#ifndef SYMSRV_LOG_H
#define SYMSRV_LOG_H

enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_INFO = 6,
};

/* What upstreams and clients say ends up in messages: control characters become '?'. */
void log_message(enum log_level level, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
