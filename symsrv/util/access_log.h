/* SPDX-License-Identifier: MIT */
/*
 * A line in logfmt for every request. Lines are collected in memory and written by a thread of
 * their own: a log that blocks loses lines (and reports how many), but delays no request.
 */
#ifndef SYMSRV_UTIL_ACCESS_LOG_H
#define SYMSRV_UTIL_ACCESS_LOG_H

#include <stddef.h>
#include <stdint.h>

struct access_log;

struct access_entry {
	const char *client;
	const char *method;
	const char *path;
	const char *user_agent; /* or NULL */
	const char *source;     /* "hit", name of the upstream, ... */
	unsigned int status;
	uint64_t bytes;
	int64_t duration_us;
};

/* `path`: a file to append to, or "-" for standard error. */
int access_log_open(const char *path, struct access_log **ret);
void access_log_close(struct access_log *log);
void access_log_write(struct access_log *log, const struct access_entry *entry);
/* Opens the file again, after a log rotation renamed it. */
void access_log_reopen(struct access_log *log);

#endif
