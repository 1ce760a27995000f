/* SPDX-License-Identifier: MIT */
#include "symsrv/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsym/base/terminal.h"

enum {
	LINE_BYTES = 1024 /* a pipe accepts this much completely or not at all */
};

/* As for what upstreams refuse. */
static const int64_t silence_ms = 3600 * 1000;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int output = STDERR_FILENO;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int lost;

/* The flags of an inherited descriptor are shared with programs that do wait. */
static void choose_output(void)
{
	struct stat status;
	int fd = -1;

	if (!fstat(STDERR_FILENO, &status) && S_ISFIFO(status.st_mode))
		fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (fd >= 0)
		output = fd;
}

void log_begin(void)
{
	pthread_once(&once, choose_output);
}

int log_open_output(void)
{
	log_begin();
	return fcntl(output, F_DUPFD_CLOEXEC, 3);
}

/* Returns the length with the newline. The caller holds the lock. */
static size_t log_render(char text[LINE_BYTES], enum log_level level, const char *format,
			 va_list arguments)
{
	char cleaned[LINE_BYTES];
	size_t rest, start = getenv("JOURNAL_STREAM")
				     ? (size_t)snprintf(text, LINE_BYTES, "<%d>", level)
				     : (size_t)snprintf(text, LINE_BYTES, "symsrv: ");
	size_t length =
		start + (size_t)vsnprintf(text + start, LINE_BYTES - start - 1, format, arguments);

	if (length > LINE_BYTES - 2)
		length = LINE_BYTES - 2;
	if (lost)
		length += (size_t)snprintf(
			text + length, LINE_BYTES - 1 - length,
			" (%u earlier messages were lost: standard error had no reader)", lost);
	if (length > LINE_BYTES - 2)
		length = LINE_BYTES - 2;
	for (size_t i = start; i < length; i++)
		if (text[i] == '\n' || text[i] == '\t')
			text[i] = '?';
	length = start + terminal_clean(cleaned, text + start, length - start, &rest);
	memcpy(text + start, cleaned, length - start);
	text[length++] = '\n';
	return length;
}

ssize_t log_write(int fd, const void *bytes, size_t count)
{
	ssize_t sent = send(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);

	return sent < 0 && errno == ENOTSOCK ? write(fd, bytes, count) : sent;
}

/* False: the pipe has no reader. Other failures cannot be reported anywhere. */
static bool log_put(const char *text, size_t length)
{
	return log_write(output, text, length) >= 0 || errno != EAGAIN;
}

void log_message(enum log_level level, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list arguments;
	size_t length;

	log_begin();
	pthread_mutex_lock(&lock);
	va_start(arguments, format);
	length = log_render(text, level, format, arguments);
	va_end(arguments);
	lost = log_put(text, length) ? 0 : lost + 1;
	pthread_mutex_unlock(&lock);
}

bool log_limit_allows(struct log_limit *limit, int64_t now_ms)
{
	int64_t next_ms = limit->next_ms;

	return now_ms >= next_ms &&
	       atomic_compare_exchange_strong(&limit->next_ms, &next_ms, now_ms + silence_ms);
}
